"""The greater, or the smaller, of two tensors element by element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from pipeline.graph.families import Pairwise
from pipeline.graph.operator import Clip
from pipeline.graph.requant import FixedPoint


@dataclass(frozen=True)
class Maximum(Pairwise):
    """``operands`` (activations or constants) of one quantization, which stays: TFLite's int8
    MAXIMUM."""

    join: ClassVar[np.ufunc] = np.maximum

    combine: Literal["add", "maximum", "whole"] = "whole"
    operands: tuple[str, str] = ("", "")
    requant: FixedPoint = FixedPoint.of([1.0])
    clip: Clip = None


@dataclass(frozen=True)
class Minimum(Maximum):
    """The smaller one: TFLite's int8 MINIMUM."""

    join: ClassVar[np.ufunc] = np.minimum
