"""Stage fetch: the data set, verified by hash and split -> data/dataset.npz."""

from pathlib import Path

from pipeline import config
from pipeline.artifacts import write_npz
from stages._main import run


def main() -> None:
    cfg = config.load()
    write_npz(Path("data/dataset.npz"), config.instantiate(cfg["data"]).arrays())


if __name__ == "__main__":
    run(main)
