"""Row by row: rows are made when they are asked for, and each lies wherever there is room.

A row may be made over a row of an input that dies with it: its kernel goes pixel by pixel, and
reads all that a pixel needs before it writes that.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.kernels.safe_offset import SafeOffset
from pipeline.plan.vocabulary import Clear, Step, whole
from pipeline.schedules.arriving import arriving, lasting, lying
from pipeline.schedules.bounds import Box, Range, added, all_of
from pipeline.schedules.channels import Pooled
from pipeline.schedules.draft import Draft
from pipeline.schedules.patches import Patches


@dataclass(frozen=True, slots=True)
class RowStep:
    """``make`` row ``row`` of the output, or ``all`` of it at once; ``open`` its sums, ``add`` row
    ``row`` of the input to them, ``close`` them."""

    kind: Literal["make", "all", "open", "add", "close"]
    op: Operator
    row: int = 0


@dataclass(frozen=True, slots=True)
class Arrive:
    """Row ``row`` of the input comes in."""

    row: int


RowsStep = RowStep | Patches | Pooled | Arrive


@dataclass(frozen=True)
class InputRows:
    """The input: there from the start, in one piece of which rows die one by one, or outside of
    what is planned; or ``streamed`` row by row, when ``Arrive`` says it, to one piece only where it
    is ``whole``."""

    tensor: str
    streamed: bool = False
    whole: bool = True

    def steps(self, draft: Draft) -> list[Step]:
        if self.streamed:
            arriving(draft)
        if lasting(draft.graph, draft.hardware):
            lying(draft)
        else:
            draft.hold_rows(self.tensor, self.whole)
        return []


@dataclass(frozen=True)
class Rows:
    """
    Attributes:
        order: every row that is needed, once; those of ``Patches`` together.
        whole: tensors that lie in one piece, such as the network's output; so do those that one
            call makes or reads.
        pixels: of a block, by the tensors whose rows lie in blocks.
    """

    order: tuple[RowsStep, ...]
    whole: frozenset[str] = frozenset()
    pixels: Mapping[str, int] = field(default_factory=dict)

    def steps(self, draft: Draft) -> Iterator[Step]:
        made = [step for step in self.order if not isinstance(step, Arrive)]
        alone = [s.op for s in made if isinstance(s, RowStep) and s.kind == "all"]
        plain = self.whole.union(*({*op.inputs, op.output} for op in alone))
        summed = {s.op.output for s in made if isinstance(s, RowStep) and s.kind == "open"}
        for op in dict.fromkeys(step.op for step in made):
            if op.output in summed:
                draft.sums(op.output, bits=32)
            else:
                draft.hold_rows(op.output, op.output in plain, self.pixels.get(op.output, 0))
        last: dict[str, array[int]] = {}
        for number, step in enumerate(self.order):
            for name, rows in reads(step, draft.graph, draft.needs).items():
                every = last.get(name) or array("i", [0]) * rows_of(draft.graph, name)
                every[rows.start : rows.stop] = array("i", [number]) * len(rows)
                last[name] = every
        for name in sorted(last.keys() - set(draft.home)):
            draft.hold_rows(name, name in plain)  # nothing but what is around it is read
        for number, step in enumerate(self.order):
            if isinstance(step, Patches | Pooled):
                yield from step.steps(draft)
                continue
            dying = {
                name: [row for row in rows if last[name][row] == number]
                for name, rows in reads(step, draft.graph, draft.needs).items()
                if name not in plain
            }
            yield _step(draft, step, dying)


def _step(draft: Draft, step: RowStep | Arrive, dying: Mapping[str, Sequence[int]]) -> Step:
    """``dying``: rows of its inputs that no other step needs any more."""
    if isinstance(step, Arrive):
        (source,) = draft.elsewhere.values()
        vector = rows_of(draft.graph, source.tensor) == 1
        box = (Range(step.row, source.shape[0] if vector else 1), *all_of(source.shape[1:]))
        return draft.move(source, draft.buffer(draft.home[source.tensor]), box)
    op = step.op
    if step.kind == "make":
        return _made(draft, op, step.row, dying)
    if step.kind == "all":
        return draft.compute(op, draft.buffer(draft.home[op.output]))
    acc = draft.buffer(draft.graph.beside(op.output, "sums"))
    if step.kind == "open":
        return Clear(op.name, whole(acc))
    if step.kind == "add":
        rank, made = len(draft.graph.tensors[op.inputs[0]].shape), all_of(acc.shape)
        read = added(op, draft.graph.tensors, made, Range(step.row, 1), -rank)
        return draft.add(op, acc, made, read)
    out = draft.hold(op.output, over=acc.name)
    return draft.finish(op, whole(acc), whole(out))


def reads(
    step: RowsStep, graph: Graph, needs: Callable[[Operator, Box], Mapping[str, Box]]
) -> Mapping[str, range]:
    """Return the rows of each tensor that ``step`` reads; ``needs``: see ``Draft``."""
    if isinstance(step, Patches):
        number, sides = step.row // step.run.rows, step.run.sides
        return {name: sides[name][0][number] for name in step.run.outer}
    if isinstance(step, Pooled):
        return {name: range(rows_of(graph, name)) for name in step.outer}
    if isinstance(step, Arrive) or step.kind in ("open", "close"):
        return {}
    names = dict.fromkeys(step.op.inputs)
    if step.kind == "all":
        return {name: range(rows_of(graph, name)) for name in names}
    if step.kind == "add":
        return {name: range(step.row, step.row + 1) for name in names}
    boxes = needs(step.op, row_box(graph, step.op.output, step.row))
    return {n: range(*boxes[n][0].ends) if len(boxes[n]) == 3 else range(1) for n in names}


def rows_of(graph: Graph, tensor: str) -> int:
    """A vector is one row."""
    shape = graph.tensors[tensor].shape
    return shape[0] if len(shape) == 3 else 1


def over_dying(draft: Draft, op: Operator, row: int) -> dict[str, SafeOffset]:
    """Return for each input over a row of which row ``row`` of the output may lie, if that dies,
    where; of those only where this saves more than is kept aside."""
    out, box = draft.buffer(draft.home[op.output]), row_box(draft.graph, op.output, row)
    found = {}
    for name in dict.fromkeys(op.inputs):
        safe = draft.safe(op, out, box, name) if draft.home[name] in draft.held else None
        if safe is not None and saved(draft.graph, op, name, safe) > 0:
            found[name] = safe
    return found


def saved(graph: Graph, op: Operator, over: str, safe: SafeOffset) -> int:
    """Nibbles that a row of the output saves by lying over one of ``over``."""
    above, below = (graph.tensors[n].nibbles // rows_of(graph, n) for n in (op.output, over))
    return safe.shared(above, below) - 2 * safe.aside_bytes


def _made(draft: Draft, op: Operator, row: int, dying: Mapping[str, Sequence[int]]) -> Step:
    out, over = draft.buffer(draft.home[op.output]), list[str]()
    for name, safe in over_dying(draft, op, row).items():
        source = draft.held[draft.home[name]]
        made = draft.held[out.name].numbers[row if draft.held[out.name].rows else 0]
        for each in dying.get(name, ()):
            if draft.overlap(made, source.numbers[each], safe):
                over.append(name)
    return draft.compute(op, out, row_box(draft.graph, op.output, row), over=over, part=f".{row}")


def row_box(graph: Graph, tensor: str, row: int) -> Box:
    """Return the box of an image's row; a vector is one row."""
    shape = graph.tensors[tensor].shape
    return (Range(row, 1), *all_of(shape[1:])) if len(shape) == 3 else all_of(shape)
