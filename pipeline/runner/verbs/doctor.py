"""``doctor``: what is installed, which boards it is enough for, and a line that mends what is not.

Exit code 0 when every board can be built for and simulated, 1 when something is missing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.metadata import version

from rich.console import Console

from pipeline import home
from pipeline.errors import ThimbleError
from pipeline.runner import needs, schema, versions

PACKAGES = ("torch", "numpy", "hydra-core", "dvc", "mlflow")


def run(words: Sequence[str]) -> int:
    if words:
        raise ThimbleError(f"doctor takes no more words: leave out {' '.join(words)}")
    say = partial(Console().print, highlight=False, markup=False, soft_wrap=True)
    python = ".".join(map(str, sys.version_info[:3]))
    say(", ".join([f"Python {python}", *(f"{name} {version(name)}" for name in PACKAGES)]))
    say(f"kept in {home.home()}")
    alike: dict[tuple[str, ...], list[str]] = {}
    for path in sorted((home.ROOT / "conf" / "hardware").glob("*.yaml")):
        alike.setdefault(tuple(_tools(path.stem)), []).append(path.stem)
    for lines, boards in alike.items():
        say("\n".join(["", ", ".join(boards), *lines]))
    return int(any(len(lines) > 1 for lines in alike))


def _tools(board: str) -> Iterator[str]:
    """Yield a line of what is found for ``board``; others only of what is missing."""
    # released weights: what a training needs is not the board's
    config = schema.plain(schema.composed(f"hardware={board}", "train=released"))
    found = versions.found(config)
    simulator = found["simulator"]
    if simulator[:1].isdigit():  # all that it says
        simulator = f"{config['hardware']['simulator']} {simulator}"
    yield f"  found    {', '.join(filter(None, (found['compiler'], simulator))) or 'nothing'}"
    if lacking := list(needs.missing(config)):
        yield f"  missing  {', '.join(need.lacking for need in lacking)}"
        yield from dict.fromkeys(f"           {need.install}" for need in lacking)
