"""Functions of two operands, four elements at a time."""

from dataclasses import dataclass
from typing import Any

from pipeline.codegen.c import expressions
from pipeline.codegen.cortex_m.ending import stored
from pipeline.codegen.int8.ending import ending
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.operators.elements import FORMULAS, KINDS, called, operands, ways
from pipeline.graph.families import Pairwise, Scaled
from pipeline.graph.operators.pairwise import Multiply
from pipeline.graph.requant import FixedPoint, Requant
from pipeline.graph.tensor import Tensor
from pipeline.kernels.cortex_m.elements import vector
from pipeline.kernels.quick import element_end


@dataclass(frozen=True)
class Operand:
    """Elements as 16 bits, without their zero point.

    Attributes:
        name: of what points to them.
        held: one element is there for all of a run.
        twice: the element is meant.
        scale: to that of both, ``left_shift`` bits to the left before; twice the element is scaled.
    """

    name: str
    tensor: Tensor
    held: bool
    twice: bool
    scale: Requant | None
    left_shift: int

    @property
    def kind(self) -> str:
        return "s8" if self.tensor.dtype.signed else "u8"

    @property
    def zeros(self) -> str:
        """Two elements of 0."""
        return expressions.both(-self.tensor.zero_point)

    def centred(self, byte: str) -> str:
        text = expressions.centred(byte, self.tensor.zero_point)
        return f"(2 * {text})" if self.twice else text

    def scaled(self, element: str) -> str:
        if not isinstance(self.scale, FixedPoint):
            return element
        multiplier, shift = self.scale.multipliers[0], -self.scale.shifts[0]
        halves = (multiplier, shift) == (1 << 30, 0)
        text = f"{element} * {1 << self.left_shift + 1 - 2 * halves}"
        if halves or not shift:
            return text if halves else f"nn_add_product((uint32_t)({text}), {multiplier}, 0)"
        return f"nn_requantized({text}, {multiplier}, {1 << shift >> 1}, {shift}, {text})"


def function(job: Job, held: str) -> dict[str, Any]:
    """Describe for a template the operands, ``value`` of a number of 32 bits by theirs, and of that
    as a byte. For a quick end values are doubled: of a product one factor."""
    op, graph, along = job.operator(Pairwise), job.program.graph, vector(job.form)
    _, formula = FORMULAS[type(op)]
    scales: tuple[Requant | None, ...] = (None,) * 2
    twice, quick = "", element_end(op, graph)
    if quick is None:
        end = ending(job.program, op)
        value, text = end.scaled(formula), end.stored("value")
    else:
        twice = (along or op.operands[1]) if isinstance(op, Multiply) else ""
        value = formula if twice else f"nn_twice({formula})"
        text = stored(quick, job.target, "value", *quick.constants[0].tolist())
    left_shift = 0
    if isinstance(op, Scaled):
        scales, left_shift = op.operand_requants, op.left_shift
    found = [
        Operand(kind, job.tensor(name), kind == held, name == twice, scale, left_shift)
        for kind, name, scale in zip(KINDS, op.operands, scales, strict=True)
    ]
    return {"operands": found, "value": value, "stored": text}


def compute(job: Job) -> None:
    """
    Raises:
        ThimbleError: where all of a pixel has to be read before any of it is written.
    """
    for views, loops, counts, part in ways(job, operands(job)):
        pixels = not part and job.pixel_by_pixel
        if pixels and max(job.unit()) > 1:
            job.refuse_overlap()
        inner, length = loops.axes[-1], counts[loops.axes[-1].count]
        held = next((kind for n, kind in enumerate(KINDS, 1) if not inner.strides[n]), "")
        job.call(
            "cortex_m/elements", views, {**counts, "words": length // 4 * 4}, kind=part,
            about=called(job), order=job.order if pixels else (), nest=loops, count=inner.count,
            scattered=[n for n, each in enumerate(loops.scattered) if each],
            rest=not (length.known and length.const % 4 == 0), any_words=length.high > 3,
            **function(job, held),
        )  # fmt: skip


WRITERS = {"cortex_m.elements": compute}
