"""Functions of two activations beside sums and products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

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
class Quotient(Binary):
    """The first of two activations by the second."""

    joins: ClassVar[str] = "divide"
