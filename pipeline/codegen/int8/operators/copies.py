"""Operators that only put elements elsewhere. What is there already costs nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pipeline.codegen.c import nest
from pipeline.codegen.c.values import Span, Value
from pipeline.codegen.c.views import View
from pipeline.codegen.int8.job import Job, arena_view, shape_text
from pipeline.codegen.int8.rows import made_row, row_view, stretches
from pipeline.codegen.program import Program
from pipeline.codegen.statements import PLACE, Argument, Call
from pipeline.errors import ThimbleError
from pipeline.graph.operators.placing import Concat, Pad, Rearrange, Reshape
from pipeline.plan.vocabulary import Move, Slice, Table


def concat(job: Job) -> None:
    """One copy an input; none for an input that was computed where it belongs."""
    op = job.operator(Concat)
    if op.axis == 2 and stretches(job):
        return _in_blocks(job, op)
    firsts = [0] * len(job.box)
    for name in op.inputs:
        _into(job, name, firsts)
        firsts[op.axis] += job.tensor(name).shape[op.axis]


def _into(job: Job, name: str, firsts: Sequence[int]) -> None:
    """Copy what the step makes of an input, whose first element is number ``firsts`` of the output,
    into its place."""
    box, read = [], []
    for part, extent, first in zip(job.box, job.tensor(name).shape, firsts, strict=True):
        inside = part.within(Span(Value(first), Value(first + extent)))
        box.append(inside)
        read.append(Span(inside.start - first, inside.stop - first))
    if not all(part.most for part in box):
        return
    view, out = job.view("in", job.given(name), read, 3), job.out(box, 3)
    apart = job.program.parts_apart(job.step.out, job.given(name))
    if not (apart or same_place(view, out)):
        raise ThimbleError(
            f"{job.op.name}: code for this core joins tensors that are in their place or apart "
            f"from it; the plan has {name} overlap it elsewhere"
        )
    _copy(job.program, job.op.name, f"{job.op.name}: {name} into its place", view, out, True)


def _in_blocks(job: Job, op: Concat) -> None:
    """A block of the row's output is one of each input, one after the other."""
    row, base = made_row(job), 0
    out, channels = row_view(job, "out", job.step.out, row), job.target.shape[2]
    for name in op.inputs:
        count, view = job.tensor(name).shape[2], row_view(job, "in", job.given(name), row)
        for stretch in stretches(job):
            blocks, _, pixels = stretch.extents
            to = replace(out, offset=out.offset + stretch.offset + base * pixels)
            read = replace(view, offset=view.offset + stretch.offset // channels * count)
            strides = ((channels * pixels, 1), (count * pixels, 1))
            loops, counts = nest.nest((Value(blocks), Value(count * pixels)), strides)
            line = to.store(loops.at(0), read.load(loops.at(1)))
            about = f"{op.name}: {name} into its place, a row in blocks"
            views = {"in": read, "out": to}
            _elements(
                job.program, op.name, about, views, loops, counts, line=line, kind=f"row{pixels}"
            )
        base += count


def pad(job: Job) -> None:
    """The border is filled, then the inside is copied."""
    op = job.operator(Pad)
    about, value = f"{op.name}: padding", op.fill(job.program.graph.tensors)
    fill(job.program, op.name, about, job.out(), value, "border")
    _into(job, op.inputs[0], [before for before, _ in op.padding])


def reshape(job: Job) -> None:
    """Row-major elements are copied in one piece, others each to its place."""
    op = job.operator(Reshape)
    piece, out = job.given(job.source.name), job.out()
    view = job.view("in", piece)
    about = f"{op.name}: {shape_text(job.source.shape)} -> {shape_text(job.target.shape)}"
    if all(_in_one_piece(each, each) for each in (view, out)):
        if view.offset != out.offset:
            bytes_ = Value(job.source.size * view.bytes)
            _block(job.program, op.name, about, view, out, bytes_, job.apart)
        return
    buffers = job.program.buffer(piece), job.program.buffer(job.step.out)
    taken, given = (buffer.addresses(buffer.box).reshape(-1, 1) for buffer in buffers)
    job.program.permute(taken, given, buffers[0].nibbles, about)


def by_strides(job: Job) -> bool:
    """Check whether a loop around it may say where it begins."""
    assert isinstance(job.op, Rearrange)
    return job.apart and max(job.op.repeats) == 1 and _evenly_spaced(job)


def _evenly_spaced(job: Job) -> bool:
    pieces = job.step.out, *job.step.ins
    return not any(isinstance(job.program.buffer(each).map, Table) for each in pieces)


def rearrange(job: Job) -> None:
    """A loop over the output, in which the input's strides are those of what is chosen. What lies
    anywhere, over its input, or is repeated unevenly, is moved element by element."""
    op = job.operator(Rearrange)
    places = [op.axes.index(axis) for axis in range(len(op.axes))]
    times = [
        1 if part.most == 1 else op.repeats[place]
        for part, place in zip(job.box, places, strict=True)
    ]
    even = (_whole(p.start, n) and _whole(p.extent, n) for p, n in zip(job.box, times, strict=True))
    if op.in_place(job.program.graph.tensors) and not job.apart and _to_front(job, op):
        return
    if not (job.apart and _evenly_spaced(job) and (max(times) == 1 or all(even))):
        return _one_by_one(job, op)
    source, read = job.source, []
    for axis, start, step, repeat in zip(op.axes, op.starts, op.steps, op.repeats, strict=True):
        part = job.box[axis]
        first, last = (n // repeat * step + start for n in (part.start, part.stop - 1))
        most = (part.most - 1) * step + 1 if repeat == 1 and step > 0 else None
        read.append(Span(first, (last if step > 0 else first) + 1, largest=most))
    view, out = job.view("in", job.given(source.name), read), job.out()
    steps: list[tuple[Value, int, int]] = []  # how many, and bytes of each in out and in
    for axis, (part, repeat, place) in enumerate(zip(job.box, times, places, strict=True)):
        stride = view.strides[place] * op.steps[place]
        steps.append((part.extent // repeat, out.strides[axis] * repeat, stride))
        steps.append((Value(repeat), out.strides[axis], 0))
    extents, *strides = zip(*steps, strict=True)
    loops, counts = nest.nest(extents, strides)
    about = f"{op.name}: {shape_text(source.shape)} -> {shape_text(op.shape)}"
    line = out.store(loops.at(0), view.load(loops.at(1)))
    _elements(job.program, op.name, about, {"in": view, "out": out}, loops, counts, line)


def _to_front(job: Job, op: Rearrange) -> bool:
    """Move one piece of the input, over which the output lies; False where it is in several."""
    read = [
        Span(part.start + start, part.stop + start)
        for part, start in zip(job.box, op.starts, strict=True)
    ]
    view, out = job.view("in", job.given(op.inputs[0]), read), job.out()
    if not _in_one_piece(view, out):
        return False
    _copy(job.program, op.name, f"{op.name}: to the front", view, out, apart=False)
    return True


def _one_by_one(job: Job, op: Rearrange) -> None:
    source, out = job.program.buffer(job.given(op.inputs[0])), job.program.buffer(job.step.out)
    box = tuple((part.start.const, part.stop.const) for part in job.box)
    at = np.ogrid[tuple(slice(*side) for side in box)]
    read = zip(op.axes, op.repeats, op.steps, op.starts, strict=True)
    every = source.addresses(source.box)
    taken = every[tuple(at[axis] // by * step + low for axis, by, step, low in read)]
    job.program.permute(taken, out.addresses(box), source.nibbles, op.name)


def _whole(number: Value, of: int) -> bool:
    """Check that it is a multiple of ``of`` whatever the loops' counters."""
    return number.known and number.const % of == 0


def move(program: Program, step: Move) -> None:
    """All of the source is read before any of the target is written."""
    source, target = program.buffer(step.src), program.buffer(step.dst)
    view, out = _piece(program, "in", step.src), _piece(program, "out", step.dst)
    name, apart = f"move {source.tensor}", program.apart(source, target)
    fixed = all(part.start.known and part.extent.known for part in out.box)
    fixed = fixed and source.copies == target.copies == 1
    if fixed and not (apart or _in_one_piece(view, out)):
        return permute(program, step, name)
    _copy(program, name, name, view, out, apart)


def permute(program: Program, step: Move, about: str = "") -> None:
    """The same, of elements of any kind; no loop is around it."""
    source, target = program.buffer(step.src), program.buffer(step.dst)
    box = step.src.box(source.shape, {})
    if step.dst.box(target.shape, {}) != box:
        raise ThimbleError(f"a move of {source.tensor} writes other elements than it reads")
    program.permute(source.addresses(box), target.addresses(box), source.nibbles, about)


def _piece(program: Program, name: str, piece: Slice) -> View:
    return arena_view(program, name, piece, program.box(piece), ring_axes=3)


def _copy(program: Program, owner: str, about: str, view: View, out: View, apart: bool) -> None:
    if same_place(view, out):
        return
    extents = [part.extent for part in out.box]
    loops, counts = nest.nest(extents, [out.strides, view.strides], [out, view])
    if _in_one_piece(view, out):
        (number,) = counts.values()
        return _block(program, owner, about, view, out, number * out.bytes, apart)
    if not apart:
        raise ThimbleError(
            f"{owner}: code for this core copies a part of it that depends on a loop to a place "
            "apart from it"
        )
    line = out.store(loops.at(0), view.load(loops.at(1)))
    _elements(program, owner, about, {"in": view, "out": out}, loops, counts, line)


def _block(
    program: Program, owner: str, about: str, view: View, out: View, count: Value, apart: bool
) -> None:
    """Bytes in one piece, which may overlap."""
    function = "memcpy" if apart else "memmove"
    arguments = out.pointer, view.pointer, Argument(PLACE, count)
    program.line(Call(function, arguments, about))


def fill(program: Program, owner: str, about: str, out: View, number: int, kind: str) -> None:
    loops, counts = nest.nest([part.extent for part in out.box], [out.strides], [out])
    line = out.store(loops.at(0), str(number))
    _elements(program, owner, about, {"out": out}, loops, counts=counts, line=line, kind=kind)


def _elements(
    program: Program, owner: str, about: str, views: Mapping[str, View], loops: nest.Nest,
    counts: Mapping[str, Value], line: str, kind: str = "copy",
) -> None:  # fmt: skip
    """``line`` for each element, apart from what it reads."""
    program.call(
        owner, "int8/elements", about, views, counts, True, kind,
        nest=loops, pixel=0, lines=(line,),
    )  # fmt: skip


def _in_one_piece(view: View, out: View) -> bool:
    """Check whether both sides' elements follow each other."""
    extents = [part.extent for part in out.box]
    loops, _ = nest.nest(extents, [out.strides, view.strides], [out, view])
    plain = not (view.lookup or out.lookup or any(view.rings) or any(out.rings))
    return plain and [axis.strides for axis in loops.axes] == [(out.bytes, out.bytes)]


def same_place(view: View, out: View) -> bool:
    """Check whether a copy would put every element where it is."""
    placed = out.lookup or any(out.rings)
    if view.lookup != out.lookup or (placed and view.box != out.box):
        return False
    moving = [axis for axis, part in enumerate(out.box) if part.most > 1]
    return view.offset == out.offset and all(
        (view.strides[a], view.rings[a]) == (out.strides[a], out.rings[a]) for a in moving
    )


WRITERS = {
    "int8.concat": concat,
    "int8.pad": pad,
    "int8.rearrange": rearrange,
    "int8.reshape": reshape,
}
