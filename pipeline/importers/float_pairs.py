"""Functions of two activations beside sums and products; what is hidden of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from pipeline.importers.deferred import torch
from pipeline.importers.float_graph import Node
from pipeline.importers.float_nodes import Binary


@dataclass(frozen=True, eq=False, kw_only=True)
class Maximum(Binary):
    keeps: ClassVar[bool] = True
    joins: ClassVar[str] = "maximum"


@dataclass(frozen=True, eq=False, kw_only=True)
class Minimum(Binary):
    keeps: ClassVar[bool] = True
    joins: ClassVar[str] = "minimum"


@dataclass(frozen=True, eq=False, kw_only=True)
class Order(Binary):
    """1 where the first is greater, -1 where it is less, else 0."""

    joins: ClassVar[str] = "order"


@dataclass(frozen=True, eq=False, kw_only=True)
class Quotient(Binary):
    """The first of two activations by the second."""

    joins: ClassVar[str] = "divide"


BELOW = 12.0
"""How far what is hidden lies below all that is not: a softmax's e**-12 is 0 in 8 bits."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Hidden(Node):
    """The activation, but ``BELOW`` less than its least where ``places``, which broadcasts to it,
    is true: scores that a mask hides from a softmax."""

    places: npt.NDArray[np.bool_]

    def compute(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        return values[0].masked_fill(torch.from_numpy(self.places), float(values[0].min()) - BELOW)
