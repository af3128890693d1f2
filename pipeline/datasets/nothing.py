"""No data set at all, for networks whose memory and speed are the question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pipeline.artifacts import Arrays
from pipeline.datasets.dataset import Dataset, Split, parts_of


@dataclass(frozen=True)
class Nothing(Dataset):
    """Three parts of 0 images (0, 1, 1, 1): later stages make pictures of nothing where they need
    some (``pipeline.datasets.noise``), and report no accuracy."""

    labelled: ClassVar[bool] = False

    def arrays(self) -> Arrays:
        empty = Split(np.zeros((0, 1, 1, 1), np.uint8), np.zeros(0, np.uint8))
        return parts_of(empty, empty, empty)
