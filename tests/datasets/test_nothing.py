from pathlib import Path

import yaml

from pipeline import config
from pipeline.datasets.nothing import Nothing


def test_no_images_in_every_part() -> None:
    node = yaml.safe_load(Path("conf/data/none.yaml").read_text())
    made = config.instantiate(node)
    assert made == Nothing()
    arrays = made.arrays()
    for part in ("train", "validation", "test"):
        assert arrays[f"{part}_images"].shape == (0, 1, 1, 1)
        assert arrays[f"{part}_labels"].shape == (0,)
