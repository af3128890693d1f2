"""``doctor``: what is installed, which boards it is enough for, and a line that mends what is not.

Exit code 0 when every board can be built for and simulated, 1 when something is missing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib import metadata

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from rich.console import Console
from rich.table import Table

from pipeline import home
from pipeline.errors import ThimbleError
from pipeline.runner import needs, schema, versions

Row = tuple[str, str, str]
"""Compiler, simulator, and what is missing."""

PACKAGES = ("torch", "numpy", "hydra-core", "dvc", "mlflow")


def run(words: Sequence[str]) -> int:
    if words:
        raise ThimbleError(f"doctor takes no more words: leave out {' '.join(words)}")
    screen = Console()
    python = ".".join(map(str, sys.version_info[:3]))
    found = [f"Python {python}", *(f"{name} {metadata.version(name)}" for name in PACKAGES)]
    screen.print(", ".join(found), highlight=False)
    screen.print(f"kept in {home.home()}", highlight=False, soft_wrap=True)
    boards, mended = dict[Row, list[str]](), dict[str, None]()
    for name, row, lines in _boards():
        boards.setdefault(row, []).append(name)
        mended |= dict.fromkeys(lines)
    table = Table("boards", "compiler", "simulator", "missing", pad_edge=False, box=None)
    for row, names in boards.items():
        table.add_row(", ".join(names), *row)
    screen.print(table, highlight=False)
    for line in mended:
        screen.print(line, highlight=False, soft_wrap=True)
    return 1 if mended else 0


def _boards() -> Iterator[tuple[str, Row, list[str]]]:
    """Each board, its row of the table, and the lines that install what it lacks."""
    schema.register()
    with initialize_config_dir(str(home.ROOT / "conf"), version_base="1.3"):
        for path in sorted((home.ROOT / "conf" / "hardware").glob("*.yaml")):
            config = compose("config", [f"hardware={path.stem}"])
            tools = versions.found(OmegaConf.to_container(config, resolve=True, enum_to_str=True))
            lacking = dict(needs.missing(config))
            said = "; ".join(lacking) or "nothing"
            yield path.stem, (tools["compiler"], tools["simulator"], said), [*lacking.values()]
