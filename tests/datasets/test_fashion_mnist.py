import gzip
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import yaml

from pipeline import config
from pipeline.datasets.fashion_mnist import FashionMnist
from pipeline.datasets.mnist import Mnist
from pipeline.datasets.store import File, Source, home, is_good
from tests.datasets.standins import Given, idx_set, pinned


class Small(FashionMnist):
    """17 images from a source that compresses them, as the packages do."""

    files: ClassVar[tuple[File, ...]] = pinned(idx_set())
    sources: ClassVar[tuple[Source, ...]] = (
        Given({f"{name}.gz": gzip.compress(content) for name, content in idx_set().items()}),
    )


def test_compressed_files_are_read(store_home: Path) -> None:
    parts = Small(validation=4).arrays()
    assert parts["train_images"].shape == (8, 28, 28, 1)
    assert (store_home / "fashion_mnist" / "t10k-labels-idx1-ubyte").is_file()


def test_it_is_not_mistaken_for_mnist() -> None:
    assert FashionMnist.title != Mnist.title
    assert [f.name for f in FashionMnist.files] == [f.name for f in Mnist.files]
    assert not {f.sha256 for f in FashionMnist.files} & {f.sha256 for f in Mnist.files}


def test_the_yaml_is_the_whole_set() -> None:
    node = yaml.safe_load(Path("conf/data/fashion_mnist.yaml").read_text())
    assert config.instantiate(node) == FashionMnist(validation=10_000, path="")


def stored() -> bool:
    folder = home() / "fashion_mnist"
    return all(is_good(folder / file.name, file.sha256) for file in FashionMnist.files)


@pytest.mark.skipif(not stored(), reason="Fashion-MNIST was not fetched on this machine yet")
def test_the_real_set() -> None:
    parts = FashionMnist().arrays()
    labels = np.concatenate([parts["train_labels"], parts["validation_labels"]])
    assert np.bincount(labels).tolist() == [6_000] * 10
    assert np.bincount(parts["test_labels"]).tolist() == [1_000] * 10
