"""Show what the network says of test images: confusion matrix, worst and typical predictions."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

Array = npt.NDArray[Any]

MOST_CLASSES = 40
"""Most classes of a matrix that can be read."""
SHOWN = 8
"""Images of each kind."""
LARGEST = 96
"""Pixels along a side of an image that is shown."""


@dataclass(frozen=True)
class Shown:
    """A test image: its number, its label, what the network says, and the picture as a data URI,
    "" where it is none."""

    number: int
    label: int
    said: int
    picture: str


@dataclass(frozen=True)
class Predictions:
    """
    Attributes:
        confusion: images by [label][answer]; empty where there are too many classes.
        worst: wrong, by how much larger the output of the wrong class is, the largest first.
        typical: right, and of middling sureness.
    """

    confusion: tuple[tuple[int, ...], ...]
    worst: tuple[Shown, ...]
    typical: tuple[Shown, ...]

    @property
    def largest(self) -> int:
        """The most images that any wrong answer was given for."""
        wrong = (n for k, row in enumerate(self.confusion) for j, n in enumerate(row) if j != k)
        return max(wrong, default=0)


def predictions(outputs: Array, labels: Array, images: Array) -> Predictions | None:
    """None where nothing is classified.

    Args:
        outputs: (n, classes) integers, of the firmware's C.
        labels: (n,), or none.
        images: (n, h, w, c) as the data set has them.
    """
    count = outputs.shape[1] if outputs.ndim == 2 else 0
    if len(labels) != len(outputs) or not len(labels) or count < 2 or labels.max() >= count:
        return None
    said, places = outputs.argmax(axis=1), np.arange(len(labels))
    values = outputs.astype(np.int64)
    others = values.copy()
    others[places, labels] = np.iinfo(np.int64).min
    margin = values[places, labels] - others.max(axis=1)  # less than 0: wrong
    order = np.argsort(margin, kind="stable")
    wrong, right = order[said[order] != labels[order]], order[said[order] == labels[order]]
    middle = right[max(0, (len(right) - SHOWN) // 2) :][:SHOWN]
    matrix = np.zeros((count, count), np.int64)
    np.add.at(matrix, (labels, said), 1)

    def show(chosen: Array) -> tuple[Shown, ...]:
        return tuple(
            Shown(int(n), int(labels[n]), int(said[n]), picture(images[n])) for n in chosen
        )

    rows = tuple(tuple(row) for row in matrix.tolist()) if count <= MOST_CLASSES else ()
    return Predictions(rows, show(wrong[:SHOWN]), show(middle))


def picture(image: Array) -> str:
    """Return a PNG; of what is no image of 1 or 3 channels "".

    Args:
        image: (h, w, c), uint8.
    """
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] not in (1, 3):
        return ""
    drawn = Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image)
    drawn.thumbnail((LARGEST, LARGEST))
    stream = io.BytesIO()
    drawn.save(stream, "png", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(stream.getvalue()).decode()}"
