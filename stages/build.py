"""Stage build: generated/ -> build/ and size.json."""

from pathlib import Path

from pipeline import board
from pipeline.targets import builds, toolchain
from stages._main import Config, stage


@stage
def main(cfg: Config) -> None:
    size = builds.build(Path("generated"), Path("build"), board.hardware(cfg["hardware"]))
    toolchain.save(size, Path("size.json"))
