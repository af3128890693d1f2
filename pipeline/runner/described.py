"""``python run.py board check FILE``: what the YAML of a board lacks, a line for each thing."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

from omegaconf import OmegaConf
from rich.console import Console

from pipeline import board, home
from pipeline.errors import ThimbleError
from pipeline.runner import allowed, messages, needs, schema
from pipeline.targets import facts


def check(name: str) -> int:
    """Return the exit code: 0 when nothing is missing, neither in the file nor of tools, else 1."""
    say = partial(Console().print, highlight=False, markup=False, soft_wrap=True)
    path = (home.typed() / name).resolve()
    try:
        found = faults(path)
    except Exception as error:
        if (said := messages.explain(error)) is None:
            raise
        found = [said]
    say("\n".join(f"{path.name}: {line}" for line in found or ["all facts are there and agree"]))
    return int(bool(found))


def faults(path: Path) -> list[str]:
    """List what is wrong with the board in the file at ``path``, whose chip may lie beside it, in
    the folder ``chip``.

    Raises:
        ThimbleError: for a file that is none, or whose name a board of this project has.
        Exception: what Hydra and OmegaConf have against it.
    """
    own = home.ROOT / "conf" / "hardware" / f"{path.stem}.yaml"
    if path.suffix != ".yaml" or not path.is_file():
        raise ThimbleError(f"there is no such file, {path}: give a board's YAML")
    if own.exists() and own != path:
        raise ThimbleError(f"there is a board {path.stem} already: give yours another name")
    with tempfile.TemporaryDirectory(prefix="thimble.") as folder:
        (Path(folder) / "hardware").symlink_to(path.parent)
        words = (f"hydra.searchpath=[file://{folder}]", f"hardware={path.stem}", "train=released")
        composed = schema.composed(*words)
    if missing := sorted(OmegaConf.missing_keys(composed.hardware)):
        return [f"{key} is missing: docs/keys.md says what it is" for key in missing]
    allowed.task(composed, [path.parent])
    config = schema.plain(composed)
    hardware = board.hardware(config["hardware"])
    found = list(facts.faults(hardware))
    if hardware.name != path.stem:
        found.insert(0, f"hardware.name={hardware.name}: it is the file's, {path.stem}")
    return [*found, *(f"{need.lacking}: {need.install}" for need in needs.missing(config))]
