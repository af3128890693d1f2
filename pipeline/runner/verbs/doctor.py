"""``doctor``: what is installed, which boards it is enough for, and a line that mends what is not.

Exit code 0 when every board can be built for and simulated, 1 when something is missing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.metadata import version
from typing import NamedTuple

from rich.console import Console

from pipeline import home
from pipeline.errors import ThimbleError
from pipeline.runner import needs, schema, versions

PACKAGES = ("torch", "numpy", "hydra-core", "dvc", "mlflow")


class Tools(NamedTuple):
    """Holds what boards have in common: tools, what is missing of them, what installs it."""

    versions: tuple[str, ...]
    missing: tuple[str, ...]
    installs: tuple[str, ...]


def run(words: Sequence[str]) -> int:
    if words:
        raise ThimbleError(f"doctor takes no more words: leave out {' '.join(words)}")
    say = partial(Console().print, highlight=False, markup=False, soft_wrap=True)
    python = ".".join(map(str, sys.version_info[:3]))
    say(", ".join([f"Python {python}", *(f"{name} {version(name)}" for name in PACKAGES)]))
    say(f"kept in {home.home()}")
    boards = dict[Tools, list[str]]()
    for board, tools in _boards():
        boards.setdefault(tools, []).append(board)
    for tools, names in boards.items():
        say(f"\n{', '.join(names)}")
        say(f"  found    {', '.join(filter(None, tools.versions)) or 'nothing'}")
        if tools.missing:
            say(f"  missing  {', '.join(tools.missing)}")
        for line in tools.installs:
            say(f"           {line}")
    return 1 if any(tools.missing for tools in boards) else 0


def _boards() -> Iterator[tuple[str, Tools]]:
    for path in sorted((home.ROOT / "conf" / "hardware").glob("*.yaml")):
        config = schema.plain(schema.composed(f"hardware={path.stem}"))
        found = versions.found(config)
        compiler, simulator = found["compiler"], found["simulator"]
        if simulator[:1].isdigit():  # all that it says
            simulator = f"{config['hardware']['simulator']} {simulator}"
        lacking = list(needs.missing(config))
        installs = dict.fromkeys(need.install for need in lacking)
        said = tuple(need.lacking for need in lacking)
        yield path.stem, Tools((compiler, simulator), said, (*installs,))
