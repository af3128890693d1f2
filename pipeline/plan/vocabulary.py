"""The plan: a small program over memory that every strategy writes and every later stage reads.

Its words are here: ``buffers`` says where elements live, ``steps`` what happens to them. A ``Plan``
that exists is well formed; whether it is right is what ``verify`` proves.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.errors import PlanError
from pipeline.plan.buffers import Buffer
from pipeline.plan.maps import Affine, Blocks, Rows, Table, packed
from pipeline.plan.parts import Parts
from pipeline.plan.steps import (
    Clear,
    Compute,
    Finish,
    Index,
    Lin,
    Loop,
    Move,
    Signal,
    Slice,
    Step,
    Track,
    Wait,
    value,
    whole,
)
from pipeline.plan.well_formed import check

__all__ = [
    "KEPT", "Affine", "Blocks", "Buffer", "Clear", "Compute", "Finish", "Index", "Lin", "Loop",
    "Move", "Plan", "PlanError", "Rows", "Signal", "Slice", "Step", "Table", "Track", "Wait",
    "packed", "value", "whole",
]  # fmt: skip

KEPT = "input_kept"
"""The note of a plan that leaves the inputs as they were."""


@dataclass(frozen=True)
class Plan(Parts):
    """One that exists is well formed."""

    def __post_init__(self) -> None:
        check(self)
