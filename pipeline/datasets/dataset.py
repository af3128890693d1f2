"""Base of all data sets: three disjoint parts of labelled images."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from pipeline.artifacts import Arrays
from pipeline.datasets.sources import Folder
from pipeline.datasets.store import File, Source, ensure
from pipeline.errors import ThimbleError

U8 = npt.NDArray[np.uint8]
SPLIT_SEED = 20190512
"""Seed of the validation split: fixed, so that runs with any seed hold out the same images."""


@dataclass(frozen=True)
class Split:
    """Images (n, h, w, c) u8 or int16, or sounds (n, samples) int16, and labels (n,) u8."""

    images: npt.NDArray[Any]
    labels: U8

    def __post_init__(self) -> None:
        axes = (2, 4) if self.images.dtype == np.int16 else (4,)
        if self.images.ndim not in axes or len(self.images) != len(self.labels):
            raise ThimbleError(
                f"{len(self.labels)} labels do not go with images of shape {self.images.shape}"
            )

    def take(self, indices: npt.NDArray[Any]) -> Split:
        return Split(self.images[indices], self.labels[indices])


def parts_of(train: Split, validation: Split, test: Split) -> Arrays:
    """Return the content of ``dataset.npz``."""
    return {
        f"{part}_{kind}": getattr(split, kind)
        for part, split in (("train", train), ("validation", validation), ("test", test))
        for kind in ("images", "labels")
    }


def seen(data: Arrays) -> Arrays:
    """Return what may decide something: all but the test set."""
    return {name: values for name, values in data.items() if not name.startswith("test_")}


@dataclass(frozen=True)
class Dataset:
    """Images or sounds in three parts: training, validation, and test for the end.

    Attributes:
        labelled: something can be learned from it.
        validation: images held out of the training set; 0: a tenth of it.
        path: file or folder that has the data; a public set is fetched if it is empty.
        train, test: images, or sounds, in that part.
        seed: random seed of the data set; the run's ``seed`` does not change it.
        classes: how many.
        shape: height, width, channels of an image.
    """

    labelled: ClassVar[bool] = True
    validation: int = 10_000

    def read(self) -> tuple[Split, Split]:
        """Return the set's own training and test parts; sets of three have their ``arrays``."""
        raise NotImplementedError

    def arrays(self) -> Arrays:
        """Return the content of ``dataset.npz``; in each part the set's own order is kept."""
        whole, test = self.read()
        count = self.validation or len(whole.labels) // 10
        if not 0 < count < len(whole.labels):
            raise ThimbleError(
                f"data.validation={count} of {len(whole.labels)} training images: "
                "both parts need at least one, set data.validation"
            )
        order = np.random.default_rng(SPLIT_SEED).permutation(len(whole.labels))
        train = whole.take(np.sort(order[count:]))
        held = whole.take(np.sort(order[:count]))
        return parts_of(train, held, test)


@dataclass(frozen=True)
class FetchedDataset(Dataset):
    """A public set of pinned files.

    Attributes:
        path: local folder with the files; empty, or where they are missing: they are fetched.
    """

    path: str = ""

    title: ClassVar[str]
    files: ClassVar[tuple[File, ...]]
    sources: ClassVar[tuple[Source, ...]]

    def folder(self) -> Path:
        """Return the folder that has every file, verified."""
        local: tuple[Source, ...] = (Folder(self.path),) if self.path else ()
        return ensure(self.title, self.files, (*local, *self.sources))

    def fetched(self) -> dict[str, bytes]:
        """Return the verified content of every file by name."""
        folder = self.folder()
        return {file.name: (folder / file.name).read_bytes() for file in self.files}
