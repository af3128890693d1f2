"""Functions of two activations beside sums and products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline.importers.deferred import torch
from pipeline.importers.float_nodes import Binary


@dataclass(frozen=True, eq=False, kw_only=True)
class Maximum(Binary):
    keeps: ClassVar[bool] = True

    def compute(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        return torch.maximum(*self.operands(values))


@dataclass(frozen=True, eq=False, kw_only=True)
class Minimum(Binary):
    keeps: ClassVar[bool] = True

    def compute(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        return torch.minimum(*self.operands(values))


@dataclass(frozen=True, eq=False, kw_only=True)
class Quotient(Binary):
    """The first of two activations by the second."""

    def compute(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        first, second = self.operands(values)
        return first / second
