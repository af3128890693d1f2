"""Stage fetch: the data set, verified by hash and split, sounds as what the front end makes of them
-> data/dataset.npz."""

from pathlib import Path

from pipeline import config
from pipeline.artifacts import write_npz
from pipeline.errors import reading
from stages._main import Config, stage


@stage
def main(cfg: Config) -> None:
    frontend = config.instantiate(cfg["frontend"])
    with reading():
        arrays = frontend.applied(config.instantiate(cfg["data"]).arrays())
    write_npz(Path("data/dataset.npz"), arrays)
