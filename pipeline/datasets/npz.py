"""The user's own images, in one ``.npz``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.artifacts import Arrays, read_npz
from pipeline.datasets.dataset import Dataset, Split
from pipeline.errors import ThimbleError

PARTS = ("train_images", "train_labels", "test_images", "test_labels")


@dataclass(frozen=True)
class Npz(Dataset):
    """``path`` holds u8 images (n, h, w) or (n, h, w, c) and integer labels (n,), as
    ``train_images``, ``train_labels``, ``test_images`` and ``test_labels``."""

    path: str = ""

    def read(self) -> tuple[Split, Split]:
        if not self.path:
            raise ThimbleError("data=npz needs data.path=FILE.npz")
        path = Path(self.path).expanduser()
        if not path.is_file():
            raise ThimbleError(f"data.path={path} does not exist")
        arrays = read_npz(path)
        if lacking := [part for part in PARTS if part not in arrays]:
            raise ThimbleError(f"{path} lacks {', '.join(lacking)}; it has {', '.join(arrays)}")
        return self._split(arrays, "train"), self._split(arrays, "test")

    def _split(self, arrays: Arrays, part: str) -> Split:
        images, labels = arrays[f"{part}_images"], arrays[f"{part}_labels"]
        if images.dtype != np.uint8:
            raise ThimbleError(f"{part}_images in {self.path} is {images.dtype}, uint8 is needed")
        if labels.ndim != 1 or labels.dtype.kind not in "iu":
            raise ThimbleError(f"{part}_labels in {self.path} must be integers of shape (n,)")
        if labels.size and not (labels.min() >= 0 and labels.max() <= 255):
            raise ThimbleError(f"{part}_labels in {self.path} must lie in 0…255")
        if images.ndim == 3:
            images = images[..., None]
        return Split(images, labels.astype(np.uint8))
