"""Stage build: generated/ -> build/ and size.json."""

from pathlib import Path

from pipeline import board, config
from pipeline.targets import builds, toolchain
from stages._main import run


def main() -> None:
    cfg = config.load()
    size = builds.build(Path("generated"), Path("build"), board.hardware(cfg["hardware"]))
    toolchain.save(size, Path("size.json"))


if __name__ == "__main__":
    run(main)
