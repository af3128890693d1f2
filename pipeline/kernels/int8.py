"""Portable C: any form of any operator, in elements of whole bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipeline.graph.operator import Operator
from pipeline.kernels.form import Form
from pipeline.kernels.gap import pixel_gap
from pipeline.kernels.kernel import Kernel
from pipeline.kernels.work import share


def word(op: Operator) -> str:
    """What kernels for this kind of operator are called: ``average_pool2d``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(op).__name__).lower()


@dataclass(frozen=True)
class Portable(Kernel):
    """Of one kind of operator.

    Attributes:
        word: the kind.
        work_cycles: of a multiply–accumulate, or of a value that is moved, compared or added.
    """

    word: str
    work_cycles: float

    @property
    def name(self) -> str:
        return f"int8.{self.word}"

    def why_not(self, form: Form) -> str:
        for name, part in form.parts.items():
            if part.bits < 8:
                return f"portable code has elements of whole bytes, {name} has {part.bits} bits"
        if form.partial and not form.op.accumulates:
            return f"no code for partial sums of {type(form.op).__name__}"
        return ""

    def overlap(self, form: Form, tensor: str) -> int | None:
        """Windows over pixels keep what they make of one until its inputs are read."""
        if form.op.slides and len(form.target.shape) == 3:
            return pixel_gap(form, tensor)
        return super().overlap(form, tensor)

    def cycles(self, form: Form) -> float:
        return self.work_cycles * share(form)
