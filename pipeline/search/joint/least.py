"""The least memory, or the fastest that fits a limit: an order of rows, then addresses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from typing import NamedTuple

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import offers
from pipeline.placement.place import EFFORT
from pipeline.schedules.arriving import streaming
from pipeline.schedules.lower import Laid, Region, lay, needed, room
from pipeline.schedules.patches import Run
from pipeline.schedules.rows import InputRows, Rows, RowsStep, RowStep
from pipeline.search.joint.cuts import NEAR, NEVER, Cuts, Piece
from pipeline.search.joint.fastest import Fastest
from pipeline.search.layouts import form_of_a_row, in_blocks
from pipeline.search.view.rows import Units

TRIES = 3


class Found(NamedTuple):
    """``bound``: nibbles that the order holds at most; ``repeated``: multiply–accumulates."""

    laid: Laid
    bound: int
    segments: int
    repeated: int = 0


def least(graph: Graph, hardware: Hardware, runs: Sequence[Run] = (), effort: float = 1.0) -> Found:
    """As little memory as is found, with ``runs`` or without; ``effort``: see ``Joint``."""
    best: Found | None = None
    for some in (runs, ()) if runs else ((),):
        cuts = cuts_of(graph, hardware, some, effort=effort)
        bound, pieces = cuts.least(best.laid.rows - 1 if best else NEVER)
        if pieces:
            laid = _laying(cuts, cuts.roomiest(bound) or pieces, bound)
            del cuts  # of a large network most of what is held
            found = laid(room(graph, hardware))
            best = min(best or found, found, key=lambda each: each.laid.rows)
    assert best is not None
    return best


def within(
    graph: Graph, hardware: Hardware, available: int, most: float, effort: float = 1.0
) -> Found | None:
    """The fastest in ``available`` nibbles, scratch included; None where none is found that takes
    less than ``most`` modelled cycles; ``effort``: see ``Joint``."""
    cuts, limit = cuts_of(graph, hardware, effort=effort), available
    fastest = Fastest(cuts)
    for _ in range(TRIES):
        way = fastest.within(limit)
        if way is None or way.cost >= most:
            break
        cuts = fastest.cuts
        if not way.last.isdisjoint(cuts.units.pixels):
            cuts = cuts_of(graph, hardware, last=way.last, effort=effort)
        found = _laying(cuts, way.pieces, limit)(inf)
        if found.laid.cells <= available:
            return found
        limit -= found.laid.cells - available
    return None


def cuts_of(
    graph: Graph,
    hardware: Hardware,
    runs: Sequence[Run] = (),
    last: frozenset[str] = frozenset(),
    effort: float = 1.0,
) -> Cuts:
    """``last``: tensors with channels last, besides the output and those of ``runs``."""
    operators = needed(graph)
    # of those no kernel makes a row, channels last, or adds one
    alone = [op for op in operators if not offers(form_of_a_row(op, graph, {}), hardware)]
    plain = last.union(*({*op.inputs, op.output} for op in alone))
    # rows of these are not made, or not read, whole
    apart = {name for run in runs for name in (*run.inner, *run.outer, run.op.output)}
    lie = in_blocks(graph, operators, hardware, plain.union(apart, graph.outputs))
    made = frozenset(op.output for op in alone)
    streams = streaming(graph, hardware)
    units = Units(graph, hardware, operators, streams, lie, runs, alone=made)
    return Cuts(units, effort=effort)


def _laying(cuts: Cuts, pieces: Sequence[Piece], bound: int) -> Callable[[float], Found]:
    """Return what lays ``pieces`` segment by segment or, where that is not near its bound, all rows
    at once, if that is less; on slower kernels where their scratch is more than is available, which
    it is given. It holds nothing of what was searched, which is large."""
    way, *others = [regions(cuts, pieces, each) for each in (True, False)[: len(pieces)]]
    again, effort = sum(run.again for run in cuts.units.runs), int(cuts.effort * EFFORT)
    draft, segments = replace(cuts.units.draft, numbers={}), len(pieces)

    def laid(available: float) -> Found:
        found = lay(
            way, draft, effort=effort, cells=available, others=others,
            enough=bound + bound // NEAR,
        )  # fmt: skip
        return Found(found, bound, segments, again)

    return laid


def regions(cuts: Cuts, pieces: Sequence[Piece], in_one_piece: bool = True) -> list[Region]:
    """The inputs, then the segments.

    Args:
        in_one_piece: tensors at which segments meet are; else only the outputs, and those of
            operators that one call makes, and the segments are one region.
    """
    graph, pixels = cuts.units.graph, cuts.units.pixels
    at_once = (op for op in cuts.units.operators if op.output in cuts.units.alone)
    read, streamed = {name for op in at_once for name in op.inputs}, cuts.units.streamed
    begin = [InputRows(name, streamed, name in read or not streamed) for name in graph.inputs]
    orders = [_steps(cuts, piece) for piece in pieces]
    if not in_one_piece:
        together = tuple(step for order in orders for step in order)
        return [*begin, Rows(together, frozenset(graph.outputs), pixels)]
    ends = [frozenset(cuts.frontiers[piece.stop]) for piece in pieces]
    return [*begin, *(Rows(order, end, pixels) for order, end in zip(orders, ends, strict=True))]


def _steps(cuts: Cuts, piece: Piece) -> tuple[RowsStep, ...]:
    if piece.form == "all":
        return (RowStep("all", cuts.units.operators[piece.start]),)
    return tuple(cuts.units.units[number].step for number in cuts.order(piece))


def at_peak(graph: Graph, hardware: Hardware) -> tuple[int, set[frozenset[str]]]:
    """Predict what a network holds row by row, by the order of its rows, nothing placed: nibbles at
    the peak, and the tensors of which rows are live each time that it is reached."""
    cuts = cuts_of(graph, hardware)
    units, (peak, pieces) = cuts.units, cuts.least()
    order = [number for piece in pieces for number in cuts.order(piece)]
    view, given = units.view(order, graph.outputs)
    state, full = view.first, list[int]()
    used = {name: [0] for name in graph.inputs}
    for task in range(len(view.tasks)):
        during, state = view.run(state, task)
        full += [task] * (during >= peak)
    names = {block: name for name, blocks in units.blocks.items() for block in blocks}
    for task, number in enumerate(order, given):
        unit = units.units[number]
        for block in (unit.writes, *unit.reads):
            if block in names:  # no sums
                used.setdefault(names[block], []).append(task)
    ends = [(name, at[0], at[-1]) for name, at in used.items()]
    return peak, {frozenset(n for n, low, high in ends if low <= t <= high) for t in full}
