"""Row by row: rows are made when they are asked for, and each lies wherever there is room.

A row may be made over a row of an input that dies with it: its kernel goes pixel by pixel, and
reads all that a pixel needs before it writes that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.plan.vocabulary import Step, whole
from pipeline.schedules.arriving import arriving
from pipeline.schedules.bounds import Box, Range, all_of, needs
from pipeline.schedules.draft import Draft, MayOverlap


@dataclass(frozen=True)
class RowStep:
    """``make`` row ``row`` of the output; ``open`` its sums, ``add`` row ``row`` of the input to
    them, ``close`` them."""

    kind: Literal["make", "open", "add", "close"]
    op: Operator
    row: int = 0


@dataclass(frozen=True)
class Arrive:
    """Row ``row`` of the input comes in."""

    row: int


@dataclass(frozen=True)
class Resident:
    """The input, where it is there from the start: its rows die one by one, where they lie."""

    tensor: str

    def steps(self, draft: Draft) -> list[Step]:
        draft.hold_rows(self.tensor, whole=True)
        return []


@dataclass(frozen=True)
class Streamed:
    """The input, where it comes in row by row; ``Arrive`` says when."""

    tensor: str

    def steps(self, draft: Draft) -> list[Step]:
        arriving(draft, draft.graph.tensors[self.tensor])
        draft.hold_rows(self.tensor)
        return []


@dataclass(frozen=True)
class Rows:
    """
    Attributes:
        order: every row that is needed, once.
        whole: tensors that lie in one piece, such as the network's output.
        pixels: of a block, by the tensors whose rows lie in blocks.
    """

    order: tuple[RowStep | Arrive, ...]
    whole: frozenset[str] = frozenset()
    pixels: Mapping[str, int] = field(default_factory=dict)

    def steps(self, draft: Draft) -> list[Step]:
        made = [step for step in self.order if isinstance(step, RowStep)]
        summed = {step.op.output for step in made if step.kind == "open"}
        for op in dict.fromkeys(step.op for step in made):
            if op.output in summed:
                draft.sums(op.output, bits=32)
            elif rows_of(draft.graph, op.output) > 1:
                draft.hold_rows(op.output, op.output in self.whole, self.pixels.get(op.output, 0))
            else:
                draft.hold(op.output)
        return [self._step(draft, step) for step in self.order]

    def _step(self, draft: Draft, step: RowStep | Arrive) -> Step:
        if isinstance(step, Arrive):
            (source,) = draft.elsewhere.values()
            box = (Range(step.row, 1), *all_of(source.shape[1:]))
            return draft.move(source, draft.buffer(draft.home[source.tensor]), box)
        op = step.op
        if step.kind == "make":
            return _made(draft, op, step.row)
        acc = draft.buffer(f"{op.output}.sums")
        if step.kind == "open":
            return draft.clear(op, whole(acc))
        if step.kind == "add":
            return draft.add(op, acc, all_of(acc.shape), _added(op, draft.graph, step.row))
        out = draft.hold(op.output, over=acc.name)
        return draft.finish(op, whole(acc), whole(out))


def rows_of(graph: Graph, tensor: str) -> int:
    """A vector is one row."""
    shape = graph.tensors[tensor].shape
    return shape[0] if len(shape) == 3 else 1


def _made(draft: Draft, op: Operator, row: int) -> Step:
    out = draft.buffer(draft.home[op.output])
    image = len(out.shape) == 3
    box = (Range(row, 1), *all_of(out.shape[1:])) if image else all_of(out.shape)
    over, made = set[str](), (out.name, row if draft.held[out.name].rows else 0)
    for name, read in needs(op, draft.graph.tensors, box).items():
        source = draft.held.get(draft.home[name])
        gap = draft.gap(op, out, box, name) if source else None
        first = read[0].low
        if source is None or gap is None or not isinstance(first, int):
            continue
        under = source.keys[first : first + read[0].size] if source.rows else source.keys
        may = [MayOverlap(made, key, gap) for key in under if (made, key) not in draft.apart]
        draft.overlaps += may
        if may:
            over.add(name)
    step = draft.compute(op, out, box, over=over)
    if draft.slows(step):
        draft.slowed.add(made)
    return step


def _added(op: Operator, graph: Graph, row: int) -> dict[str, Box]:
    """Row ``row`` of the input that ``op`` adds up, and of the weights that meet it."""
    rank = len(graph.tensors[op.inputs[0]].shape)
    found: dict[str, Box] = {}
    for term in op.terms(graph.tensors):
        for operand in term.operands:
            box = all_of(graph.tensors[operand.tensor].shape)
            axis = len(box) - rank
            found[operand.tensor] = (*box[:axis], Range(row, 1), *box[axis + 1 :])
    return found
