"""Element by element: addition, multiplication, look-up tables."""

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from pipeline.codegen.c import expressions, nest
from pipeline.codegen.c.nest import Nest
from pipeline.codegen.c.values import Span, Value
from pipeline.codegen.c.views import View
from pipeline.codegen.constants import narrowest
from pipeline.codegen.int8.ending import Scaling, ending, scaling
from pipeline.codegen.int8.job import Job, shape_text
from pipeline.codegen.int8.rows import Stretch, made_row, row_view, stretches
from pipeline.errors import ThimbleError
from pipeline.graph import broadcast
from pipeline.graph.families import Pairwise, Scaled
from pipeline.graph.operator import limits
from pipeline.graph.operators.lookup import Interpolate, Lookup
from pipeline.graph.operators.pairwise import (
    Add,
    Maximum,
    Minimum,
    Multiply,
    Order,
    Prelu,
    SquaredDifference,
)
from pipeline.kernels.int8.costs import word
from pipeline.kernels.int8.looked_up import FRACTION_BITS, tables


def looked_up_add(job: Job) -> None:
    """The upper half of a sum of two numbers from tables, clipped."""
    op = job.operator(Add)
    found = tables(op, job.program.graph)
    assert found is not None
    walk, parts = walked(job, dict(zip(KINDS, op.operands, strict=True))), list[str]()
    for number, (kind, values) in enumerate(zip(KINDS, found, strict=True), 1):
        turned = np.roll(values, job.tensor(op.operands[number - 1]).dtype.minimum)
        table = job.table(
            kind, "int32_t", turned, f"what each {kind} byte adds, 16 bits of it a fraction"
        )
        parts.append(table.read(f"(uint8_t){walk.views[kind].load(walk.loops.at(number))}"))
    low, high = limits(job.target, op.clip)
    lines = [f"const int16_t sum = (int16_t)(({' + '.join(parts)}) >> {FRACTION_BITS});"]
    shape = shape_text(job.target.shape)
    about = f"{op.name}: sum of {shape} and {shape}, by tables"
    result = f"({walk.views['out'].type})(sum < {low} ? {low} : sum > {high} ? {high} : sum)"
    call(job, about, walk, lines, result)


def pairwise(job: Job) -> None:
    """A function of two operands; a partial result is that of those the step names."""
    for walk in ways(job, operands(job)):
        _pairwise(job, walk)


def operands(job: Job) -> dict[str, str]:
    """Names of a function's operands, by what C calls them: those that the step reads."""
    pairs = zip(KINDS, job.operator(Pairwise).operands, strict=True)
    return {kind: name for kind, name in pairs if job.slice(name) or not job.partial}


class Walk(NamedTuple):
    """Views, loops over their elements, in which the output is the first, their counts, and a word
    for what of the step that is."""

    views: Mapping[str, View]
    loops: Nest
    counts: Mapping[str, Value]
    part: str = ""


def ways(job: Job, named: Mapping[str, str]) -> Iterator[Walk]:
    """Write all that a step makes of the tensors ``named`` by what C calls them: at once, or as
    they lie in a row's blocks."""
    found = [] if job.partial else stretches(job)
    yield from [_in_blocks(job, stretch, named) for stretch in found] or [walked(job, named)]


def _in_blocks(job: Job, stretch: Stretch, named: Mapping[str, str]) -> Walk:
    """A vector's elements go with the channels."""
    row, views, strides = made_row(job), dict[str, View](), [stretch.strides]
    for kind, name in named.items():
        if job.tensor(name).shape == job.target.shape:
            views[kind] = stretch.of(row_view(job, kind, job.given(name), row))
            strides.append(stretch.strides)
        else:
            views[kind] = operand(job, name).named(kind)
            along = broadcast_strides(views[kind], job.tensor(name).shape, job.target.shape)
            strides.append((0, along[-1], 0))
    views["out"] = stretch.of(row_view(job, "out", job.step.out, row))
    return Walk(views, *nest.nest([Value(n) for n in stretch.extents], strides), "row")


def _pairwise(job: Job, walk: Walk) -> None:
    """Write the call; operands with scales of their own are each brought to one that they share."""
    op, graph, (views, loops, *_) = job.operator(Pairwise), job.program.graph, walk
    lines, texts = list[str](), list[str]()
    for number, kind in enumerate((kind for kind in KINDS if kind in views), 1):
        name = op.operands[KINDS.index(kind)]
        byte = views[kind].load(loops.at(number))
        texts.append(expressions.centred(byte, job.tensor(name).zero_point))
        if isinstance(op, Scaled):
            requant = op.operand_requants[KINDS.index(kind)]
            ends = (broadcast.extremes(name, graph.tensors) << op.left_shift).tolist()
            scale = scaling(job.program.constants, op.name, requant, (min(ends), max(ends)))
            moved = scale.scaled(f"(int32_t){texts[-1]} * {1 << op.left_shift}")
            texts[-1] = f"{kind}_scaled"
            lines.append(f"const int32_t {kind}_scaled = {moved};")
    _, formula = FORMULAS[type(op)]
    total = formula.format(*texts) if len(texts) > 1 else texts[0]
    if job.partial:
        result = views["out"].added(loops.at(0), total)
    else:
        end = ending(job.program, op)
        value = end.scaled(total)
        if isinstance(op, Prelu):
            value = f"{texts[0]} >= 0 ? {end.scaled(texts[0])} : {_below(job, op).scaled(total)}"
        lines.append(f"const int32_t value = {value};")
        result = end.stored("value")
    about = f"{called(job)}{', partial' if job.partial else ''}"
    call(job, about, walk, lines, result)


def _below(job: Job, op: Prelu) -> Scaling:
    """Return what becomes of products with slopes."""
    ends = np.outer(*(broadcast.extremes(name, job.program.graph.tensors) for name in op.operands))
    sums = int(ends.min()), int(ends.max())
    return scaling(job.program.constants, op.name, op.below, sums)


def called(job: Job) -> str:
    """Return what is said of the code."""
    op = job.operator(Pairwise)
    shapes = " and ".join(shape_text(job.tensor(name).shape) for name in op.operands)
    return f"{op.name}: {FORMULAS[type(op)][0]} of {shapes}"


KINDS = ("left", "right")

FORMULAS: dict[type[Pairwise], tuple[str, str]] = {
    Add: ("sum", "{} + {}"),
    Multiply: ("product", "(int32_t){} * {}"),
    Maximum: ("greater one", "({0} > {1} ? {0} : {1})"),
    Minimum: ("smaller one", "({0} < {1} ? {0} : {1})"),
    Prelu: ("rectifier by slopes", "(int32_t){} * {}"),
    Order: ("order", "(({0} > {1}) - ({0} < {1}))"),
    SquaredDifference: ("squared difference", "({0} - {1}) * ({0} - {1})"),
}
"""Name of the function, and its C by that of its operands, each without its zero point."""

RINGS = 3
"""Axes that may go round: all of an image."""


def walked(job: Job, named: Mapping[str, str]) -> Walk:
    """See ``ways``."""
    views = {kind: operand(job, name).named(kind) for kind, name in named.items()}
    steps = [
        broadcast_strides(views[kind], job.tensor(name).shape, job.target.shape)
        for kind, name in named.items()
    ]
    out, pixels = job.out(ring_axes=RINGS), job.pixel_by_pixel
    return Walk({**views, "out": out}, *nest.nest(
        [part.extent for part in job.box], [out.strides, *steps], [out, *views.values()],
        ordered=pixels and bool(job.order), pixels=pixels,
    ))  # fmt: skip


def call(job: Job, about: str, walk: Walk, lines: Sequence[str], result: str) -> None:
    """``lines`` of C compute an element, ``result`` is what is stored."""
    views, loops, counts, part = walk
    out, channels = views["out"], job.box[-1].most
    pixel = channels if job.pixel_by_pixel else 0
    kept = expressions.product(loops.pixel, out.bytes) if pixel else ""
    store = out.named("done").store(kept, result) if pixel else out.store(loops.at(0), result)
    after = out.store(loops.at(0), out.named("done").load(kept)) if pixel else ""
    job.call(
        "int8/elements", views, counts, kind=part, about=about, order=job.order if pixel else (),
        nest=loops, lines=(*lines, store), pixel=pixel * out.bytes, after=after,
    )  # fmt: skip


def lookup(job: Job) -> None:
    op = job.operator(Lookup)
    values = np.array(op.table, dtype=np.int64)
    # the elements' own bit pattern is the index
    turned = np.roll(values, job.source.dtype.minimum)
    if job.target.dtype.bits == 8 and not job.target.dtype.signed:
        kind = "uint8_t"
    else:
        kind = narrowest(turned)
    table = job.table("table", kind, turned, "by input byte")
    for walk in ways(job, {"in": job.source.name}):
        value = table.read(f"(uint8_t){walk.views['in'].load(walk.loops.at(1))}")
        call(job, f"{op.name}: look-up, {shape_text(job.source.shape)}", walk, (), value)


def interpolated(job: Job) -> None:
    op = job.operator(Interpolate)
    values = np.array([*op.table, 0], np.int64)
    table = job.program.constants.add(op.name, "table", "int16_t", values, f"{op.name}: by places")
    walk = walked(job, {"in": op.inputs[0]})
    last, ends, step = 2 * op.middle, op.end << op.interval, 1 << op.interval
    product = f"(int32_t){walk.views['in'].load(walk.loops.at(1))} * {op.multiplier}"
    half = f"{op.offset + (1 << op.narrow >> 1)}{f' - (u < {op.middle})' if op.odd else ''}"
    lines = (
        f"int32_t u = (({product} + {1 << op.shift >> 1}) >> {op.shift}) + {op.middle};",
        f"u = u <= {ends} ? 0 : u >= {last - ends} ? {last} : u;",
        f"const int32_t low = {table.read(f'u >> {op.interval}')};",
        f"const int32_t rise = {table.read(f'(u >> {op.interval}) + 1')} - low;",
        f"const int32_t line = low * {step} + rise * (u & {step - 1}) + {half};",
    )
    about = f"{op.name}: lines between values, {shape_text(job.target.shape)}"
    call(job, about, walk, lines, f"line >> {op.narrow}")


def operand(job: Job, name: str) -> View:
    """Return the elements of ``name`` that the output's box needs."""
    shape = job.tensor(name).shape
    parts = job.box[len(job.box) - len(shape) :]
    one = Span(Value(0), Value(1))
    box = [one if n == 1 else part for n, part in zip(shape, parts, strict=True)]
    piece = job.given(name)
    if job.partial and not all(
        mine.covers(part) for mine, part in zip(job.program.box(piece), box, strict=True)
    ):
        raise ThimbleError(f"{job.op.name}: code for this core adds an operand's box whole")
    buffer = job.program.buffer(piece)
    if buffer.role != "constant":
        return job.view("operand", piece, box, RINGS)
    values, tensor = job.program.graph.constants[name], job.tensor(name)
    table = job.program.constants.add(
        name, "", f"{tensor.dtype}_t", values, f"{name}: constant", job.in_flash(name)
    )
    steps = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    first = Value(0)
    for part, each in zip(box, steps, strict=True):
        first = first + part.start * each
    rings = (0,) * len(shape)
    return View(
        "operand", table.name, first, tuple(steps), rings, tuple(box),
        bits=tensor.dtype.bits, signed=tensor.dtype.signed, constant=True, accessor=table.accessor,
    )  # fmt: skip


def broadcast_strides(view: View, shape: tuple[int, ...], out: tuple[int, ...]) -> tuple[int, ...]:
    """Strides along the output's axes: 0 where the operand has extent 1, or no such axis."""
    missing = len(out) - len(shape)
    own = (0 if extent == 1 else step for extent, step in zip(shape, view.strides, strict=True))
    return (*(0 for _ in range(missing)), *own)


WRITERS = {
    "int8.looked_up_add": looked_up_add,
    "int8.lookup": lookup,
    "int8.interpolate": interpolated,
    **{f"int8.{word(kind)}": pairwise for kind in FORMULAS},
}
