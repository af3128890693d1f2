"""Portable C: any form of any operator, in elements of whole bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipeline.graph.operator import Operator
from pipeline.kernels.form import Form
from pipeline.kernels.kernel import Kernel
from pipeline.plan.rates import work


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
            if part.spread == "table":
                return f"portable code has no tables of addresses, {name} has one"
        return ""

    def cycles(self, form: Form) -> float:
        return self.work_cycles * share(form)


def share(form: Form) -> float:
    """Work of the step: the operator's, as far as the step goes."""
    total = float(work(form.op, form.graph))
    pieces = [(form.out.extents, form.target.shape)]
    if form.partial:
        pieces += [
            (part.extents, form.graph.tensors[name].shape)
            for name, part in form.parts.items()
            if name != form.op.output
        ][:1]
    for extents, shape in pieces:
        for extent, limit in zip(extents, shape, strict=True):
            total *= extent / limit
    return total
