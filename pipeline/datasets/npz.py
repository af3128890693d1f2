"""The user's own images, in one ``.npz``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline import axes, given
from pipeline.artifacts import Arrays
from pipeline.datasets.dataset import Dataset, Split
from pipeline.datasets.raw import integers, raw
from pipeline.errors import ThimbleError
from pipeline.given import Header

KEY = "data.path"


@dataclass(frozen=True)
class Npz(Dataset):
    """Your own images in one .npz: train_images, train_labels, test_images and test_labels.

    Images are (n, h, w, c), (n, h, w) or, signals, (n, length); of uint8, or what ``raw`` takes for
    it. Labels are integers of 0…255, (n,) or (n, 1).

    For a network of several inputs: train_NAME and test_NAME of each instead of the images, (n, …).

    Attributes:
        path: the file.
        shape: height, width, channels that the network takes; empty: images stay as they are, and
            a signal becomes (1, length, 1).
        inputs: the names of the network's inputs, in its order, where there are several.
        stored: images are integers that the network's input stores, of 8 or 16 bits.
    """

    path: str = ""
    shape: tuple[int, ...] = ()
    inputs: tuple[str, ...] = ()
    stored: bool = False

    def arrays(self) -> Arrays:
        return super().arrays() | ({"inputs": np.array(self.inputs)} if self.inputs else {})

    def read(self) -> tuple[Split, Split]:
        found = self._headers()
        train, test = (self._split(part, found) for part in ("train", "test"))
        return train, test

    def _headers(self) -> dict[str, Header]:
        """Return the headers of the arrays, after checking their sizes and shapes."""
        if not self.path:
            raise ThimbleError("data=npz needs data.path=FILE.npz")
        kinds = (*(self.inputs or ("images",)), "labels")
        parts = [f"{part}_{kind}" for part in ("train", "test") for kind in kinds]
        found = given.headers(Path(self.path).expanduser(), KEY, parts)
        if lacking := [part for part in parts if part not in found]:
            raise ThimbleError(
                f"{KEY}={self.path} lacks {', '.join(lacking)}; it has "
                f"{', '.join(found) or 'none of them'}"
            )
        for part in ("train", "test"):
            if not self.inputs:
                self._image(f"{part}_images", found[f"{part}_images"].shape)
            self._check_labels(part, found)
        return found

    def _image(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """(h, w, c) of one image, as it is stored here."""
        image = {2: (1, *shape[1:], 1), 3: (*shape[1:], 1), 4: shape[1:]}.get(len(shape))
        if image is None:
            raise ThimbleError(
                f"{name} in {self.path} is {axes.times(shape)}: (n, height, width, channels), "
                "(n, height, width) or (n, length) is needed"
            )
        if not self.shape or image == self.shape:
            return image
        if not axes.fits(image, self.shape):
            wanted = axes.times(self.shape)
            mend = axes.advice(image, self.shape) or (
                f"set model.input_shape=[{','.join(map(str, image))}], or choose another model"
            )
            raise ThimbleError(
                f"{name} in {self.path} are {axes.times(shape[1:])}, the network takes {wanted} "
                f"(height, width, channels): {mend}"
            )
        return self.shape

    def _check_labels(self, part: str, found: dict[str, Header]) -> None:
        name, labels = f"{part}_labels", found[f"{part}_labels"]
        if len(labels.shape) == 2 and labels.shape[1] > 1:
            raise ThimbleError(
                f"{name} in {self.path} is {axes.times(labels.shape)}, integers of shape (n,) are "
                f"needed: where it is one-hot, save {name}.argmax(axis=1)"
            )
        if labels.shape not in ((labels.shape or (0,))[:1], (*labels.shape[:1], 1)) or (
            labels.dtype.kind not in "iu"
        ):
            raise ThimbleError(
                f"{name} in {self.path} must be integers of shape (n,), it is {labels.dtype} of "
                f"{axes.times(labels.shape) or 'no axes'}"
            )
        for images in (f"{part}_{kind}" for kind in self.inputs or ("images",)):
            if labels.shape[0] != (count := (found[images].shape or (0,))[0]):
                raise ThimbleError(
                    f"{self.path}: {labels.shape[0]} labels do not go with "
                    f"{count} images ({part}_labels, {images})"
                )

    def _split(self, part: str, found: dict[str, Header]) -> Split:
        path = Path(self.path).expanduser()
        labels, every = f"{part}_labels", list[npt.NDArray[Any]]()
        for images in (f"{part}_{kind}" for kind in self.inputs or ("images",)):
            take = integers if self.stored else raw
            pixels = take(given.array(path, KEY, images), f"{images} in {self.path}")
            whole = (1, 1, pixels[0].size) if self.inputs and len(pixels) else ()
            every.append(pixels.reshape(-1, *(whole or self._image(images, found[images].shape))))
        classes = given.array(path, KEY, labels).reshape(-1)
        if classes.size and not (classes.min() >= 0 and classes.max() <= 255):
            raise ThimbleError(f"{labels} in {self.path} must lie in 0…255")
        return Split(np.concatenate(every, axis=3), classes.astype(np.uint8))
