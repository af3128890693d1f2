"""How contributions to one element meet. The interpreter, the planner and every set of kernels read
it here: a new way is an entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from pipeline.graph.tensor import DType

Combine = Literal["add", "maximum", "minimum", "whole"]
"""``whole``: there are no contributions, an element is made all at once."""


class Reduction(NamedTuple):
    """
    Attributes:
        pooling: what reducing windows is called.
        join: of two values.
        start: of a type of elements, what nothing contributed to yet: it changes no other value.
        pick: where the result is one of the two, C functions of both: ``nn_PICK``, and of four
            bytes at once ``nn_PICK_s8`` and ``nn_PICK_u8``; "" for sums.
        sign: how the one that stays compares to the other, in C.
    """

    pooling: str
    join: np.ufunc
    start: Callable[[DType], int]
    pick: str = ""
    sign: str = ""

    def step(self, held: str, value: str) -> str:
        """Return C that reduces the variable ``held`` by ``value``."""
        return f"{held} = nn_{self.pick}({held}, {value})" if self.pick else f"{held} += {value}"


REDUCTIONS = {
    "add": Reduction("average", np.add, lambda kind: 0),
    "maximum": Reduction("maximum", np.maximum, lambda kind: kind.minimum, "max", ">"),
    "minimum": Reduction("minimum", np.minimum, lambda kind: kind.maximum, "min", "<"),
}
