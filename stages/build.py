"""Stage build: generated/ -> build/ and size.json."""

from pathlib import Path
from typing import Any

from pipeline import board
from pipeline.targets import builds, toolchain
from stages._main import stage


@stage
def main(cfg: dict[str, Any]) -> None:
    size = builds.build(Path("generated"), Path("build"), board.hardware(cfg["hardware"]))
    toolchain.save(size, Path("size.json"))
