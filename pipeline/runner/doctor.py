"""``python run.py doctor``: what is installed, for which boards it is enough, and a line that mends
what is not."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from functools import partial
from importlib.metadata import version

from rich.console import Console

from pipeline import home
from pipeline.runner import needs, schema, versions

PACKAGES = ("torch", "numpy", "hydra-core", "dvc", "mlflow")


def run() -> int:
    """Return the exit code: 0 when every board can be built for and simulated, else 1."""
    say = partial(Console().print, highlight=False, markup=False, soft_wrap=True)
    packages = (f"{name} {version(name)}" for name in PACKAGES)
    say(", ".join([f"Python {platform.python_version()}", *packages]))
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
