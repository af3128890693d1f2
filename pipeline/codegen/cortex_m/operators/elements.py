"""Functions of two operands, four elements at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from pipeline.codegen.binding import form_of
from pipeline.codegen.c import expressions, window
from pipeline.codegen.c.values import Value
from pipeline.codegen.c.views import View
from pipeline.codegen.cortex_m.by_row.rows import out_row
from pipeline.codegen.cortex_m.ending import QuickText
from pipeline.codegen.int8.ending import ending
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.operators.elements import FORMULAS, KINDS, called
from pipeline.codegen.int8.rows import made_row, row_view, stretches
from pipeline.graph.families import Pairwise
from pipeline.graph.operators.add import Add
from pipeline.graph.operators.multiply import Multiply
from pipeline.graph.requant import FixedPoint, Requant
from pipeline.graph.tensor import Tensor
from pipeline.kernels.cortex_m.elements import vector
from pipeline.kernels.cortex_m.quick import element_end

HALF = 1 << 30


@dataclass(frozen=True)
class Operand:
    """Four bytes as pairs of 16 bits, without their zero point.

    Attributes:
        name: of what points to the elements of a run; those are counted by c.
        held: one element is there for all of a run.
        twice: the element is meant.
        scale: to that of both, ``left_shift`` bits to the left before; twice the element is scaled.
    """

    name: str
    tensor: Tensor
    held: bool
    twice: bool
    scale: FixedPoint | None
    left_shift: int

    def centred(self, byte: str) -> str:
        text = expressions.centred(byte, self.tensor.zero_point)
        return f"(2 * {text})" if self.twice else text

    @property
    def words(self) -> list[str]:
        """C that loads four elements."""
        if self.held:
            return []
        half, name = -self.tensor.zero_point & 0xFFFF, self.name
        zeros, kind = f"0x{half << 16 | half:08X}u", "s8" if self.tensor.dtype.signed else "u8"
        lines = [f"const uint32_t {name}_word = nn_load_word(&{name}[c]);"]
        for word in ("even", "odd"):
            once = f"nn_add_{word}_{kind}({zeros}, {name}_word)"
            if self.twice:
                lines.append(f"const uint32_t {name}_{word}_once = {once};")
                once = f"nn_sums({name}_{word}_once, {name}_{word}_once)"
            lines.append(f"const uint32_t {name}_{word} = {once};")
        return lines

    def element(self, number: int, byte: str) -> tuple[list[str], str]:
        """C before, and of, one of them, or of a ``byte``."""
        half, word = ("low", "high")[number // 2], ("even", "odd")[number % 2]
        text = self.centred(byte) if byte else f"nn_{half}({self.name}_{word})"
        text, scale, name = f"{self.name}_held" if self.held else text, self.scale, self.name
        if scale is None:
            return [], text
        multiplier, shift = scale.multipliers[0], -scale.shifts[0]
        halves = (multiplier, shift) == (HALF, 0)
        lines = [f"const int32_t {name}_x = {text} * {1 << self.left_shift + 1 - 2 * halves};"]
        if halves:
            return lines, f"{name}_x"
        if not shift:
            return lines, f"nn_add_product((uint32_t){name}_x, {multiplier}, 0)"
        offset = 1 << shift >> 1
        return lines, f"nn_requantized({name}_x, {multiplier}, {offset}, {shift}, {name}_x)"


@dataclass(frozen=True)
class Function:
    """``value``: C of a number of 32 bits by those of the operands; ``stored``: of it as a byte."""

    operands: tuple[Operand, ...]
    value: str
    stored: str

    @property
    def words(self) -> list[str]:
        return [line for operand in self.operands for line in operand.words]

    def element(self, place: str, number: int, bytes_: Sequence[str] = ("", "")) -> list[str]:
        """C that stores element ``number`` of four, or of two ``bytes_``."""
        pairs = zip(self.operands, bytes_, strict=True)
        found = [operand.element(number, byte) for operand, byte in pairs]
        lines = [line for before, _ in found for line in before]
        value = self.value.format(*(text for _, text in found))
        return [*lines, f"const int32_t value = {value};", f"{place} = {self.stored};"]


def function(job: Job, held: str) -> Function:
    """Describe the function; for a quick end values are doubled: of a product one factor."""
    op, graph, along = job.operator(Pairwise), job.program.graph, vector(form_of(job))
    _, formula = FORMULAS[type(op)]
    scales: tuple[Requant | None, ...] = op.operand_requants if isinstance(op, Add) else (None,) * 2
    twice, quick = "", element_end(op, graph)
    if quick is None:
        end = ending(job.program, op)
        value, stored = end.scaled(formula), end.stored("value")
    else:
        twice = (along or op.operands[1]) if isinstance(op, Multiply) else ""
        end_text, constants = QuickText.of(quick, job.target), quick.constants[0].tolist()
        value = formula if twice else f"nn_twice({formula})"
        stored = end_text.saturated(end_text.requantized("value", *constants))
    operands = (
        Operand(
            name=kind,
            tensor=job.tensor(name),
            held=kind == held,
            twice=name == twice,
            scale=scale if isinstance(scale, FixedPoint) else None,
            left_shift=op.left_shift if isinstance(op, Add) else 0,
        )
        for kind, name, scale in zip(KINDS, op.operands, scales, strict=True)
    )
    return Function(tuple(operands), value, f"({job.out().type})({stored})")


def compute(job: Job) -> None:
    """Runs are pixels where a vector goes along with each, otherwise there is one."""
    count, along = Value(1), vector(form_of(job))
    for part in job.box[: -1 if along else None]:
        count = count * part.extent.const if part.extent.known else part.extent * count.const
    channels = Value(job.target.shape[-1])
    runs, length = (count, channels) if along else (Value(1), count)
    _call(job, _views(job), {"blocks": Value(1), "runs": runs, "length": length})


def by_row(job: Job) -> None:
    """Runs are a channel's pixels in a block where a vector has one element for each of them."""
    views, along = _views(job, made_row(job)), vector(form_of(job))
    if not along:
        sizes = {"blocks": 1, "runs": 1, "length": prod(job.target.shape[1:])}
        return _call(job, views, {name: Value(n) for name, n in sizes.items()}, "row")
    held = KINDS[job.operator(Pairwise).operands.index(along)]
    for stretch in stretches(job):
        moved = {n: v if n == f"{held}_in" else stretch.of(v) for n, v in views.items()}
        ranges = zip(("blocks", "runs", "length"), map(Value, stretch.extents), strict=True)
        _call(job, moved, dict(ranges), "row", held)


def gathered(job: Job) -> None:
    """
    Raises:
        ThimbleError: where all of a pixel has to be read before any of it is written.
    """
    if max(job.unit()) > 1:
        job.refuse_overlap()
    rows, columns, channels = job.box
    ranges = {**window.named("y", rows), **window.named("x", columns), "length": channels.extent}
    _call(job, _views(job), ranges, anywhere=True)


def _views(job: Job, row: int | None = None) -> dict[str, View]:
    """``row``: the one of those in blocks."""
    op, along, found = job.operator(Pairwise), vector(form_of(job)), dict[str, View]()
    for kind, name in zip(KINDS, op.operands, strict=True):
        called, piece = f"{kind}_in", job.given(name)
        if row is not None and name != along:
            found[called] = row_view(job, called, piece, row)
        else:
            found[called] = job.view(called, piece, None if name == along else job.box)
    return {**found, "out": job.out() if row is None else out_row(job)}


def _call(
    job: Job,
    views: Mapping[str, View],
    ranges: Mapping[str, Value],
    kind: str = "",
    held: str = "",
    anywhere: bool = False,
) -> None:
    """``held``: the operand which has one element for all of a run."""
    op, length, along = job.operator(Pairwise), ranges["length"], vector(form_of(job))
    job.call(
        "cortex_m/elements",
        called(job),
        views,
        {**ranges, "words": length // 4 * 4},
        job.apart,
        kind,
        order=job.order if anywhere else (),
        any_strides=anywhere,
        anywhere=anywhere,
        along=KINDS[op.operands.index(along)] if along else "",
        rest=not (length.known and length.const % 4 == 0),
        any_words=length.high > 3,
        function=function(job, held),
    )
