"""Element-wise product of two quantized tensors, such as squeeze-excitation's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pipeline.graph.families import Pairwise
from pipeline.graph.operator import Clip
from pipeline.graph.requant import FixedPoint


@dataclass(frozen=True)
class Multiply(Pairwise):
    """``operands`` (activations or constants) multiplied, then requantized: TFLite's int8 MUL."""

    join: ClassVar[np.ufunc] = np.multiply

    operands: tuple[str, str] = ("", "")
    requant: FixedPoint = FixedPoint((0,), (0,))
    clip: Clip = None
