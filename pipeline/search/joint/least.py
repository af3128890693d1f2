"""The least memory, or the fastest that fits a limit: an order of rows, then addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import inf
from typing import NamedTuple

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import offers
from pipeline.placement.place import EFFORT
from pipeline.schedules.arriving import streaming
from pipeline.schedules.channels import Pooled
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


def least(
    graph: Graph, hardware: Hardware, runs: Sequence[Run | Pooled] = (), effort: float = 1.0
) -> Found:
    """Find as little memory as can be, with ``runs`` or without; ``effort``: see ``Joint``."""
    best: Found | None = None
    for some in (runs, ()) if runs else ((),):
        cuts = cuts_of(graph, hardware, some, effort=effort)
        bound, pieces = cuts.least(best.laid.rows - 1 if best else NEVER)
        if pieces:
            laid = _laying(cuts, cuts.roomiest(bound) or pieces, bound, cuts.sparse(bound))
            del cuts  # of a large network most of what is held
            found = laid(room(graph, hardware))
            best = min(best or found, found, key=lambda each: each.laid.rows)
    assert best is not None
    return best


def within(
    graph: Graph, hardware: Hardware, available: int, most: float, effort: float = 1.0
) -> Found | None:
    """Return the fastest in ``available`` nibbles, scratch included; None where none is found that
    takes less than ``most`` modelled cycles; ``effort``: see ``Joint``."""
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
    runs: Sequence[Run | Pooled] = (),
    last: frozenset[str] = frozenset(),
    effort: float = 1.0,
) -> Cuts:
    """``last``: tensors with channels last, besides the output; with ``runs`` all have."""
    operators = needed(graph)
    # of those no kernel makes a row, channels last, or adds one
    alone = [op for op in operators if not offers(form_of_a_row(op, graph, {}), hardware)]
    plain = last.union(*({*op.inputs, op.output} for op in alone))
    # where runs save memory no other rows lie in blocks, which overlap less
    lie = {} if runs else in_blocks(graph, operators, hardware, plain.union(graph.ends))
    made = frozenset(op.output for op in alone)
    streams = streaming(graph, hardware)
    units = Units(graph, hardware, operators, streams, lie, runs, alone=made)
    return Cuts(units, effort=effort)


def _laying(
    cuts: Cuts, pieces: Sequence[Piece], bound: int, orders: Iterable[Iterable[int]] = ()
) -> Callable[[float], Found]:
    """Return what lays ``pieces`` segment by segment or, where that is not near its bound, all rows
    at once, in their order or in ``orders``, if that is less; on slower kernels where their scratch
    is more than is available, which it is given. It holds nothing of what was searched."""
    way, units = regions(cuts, pieces), cuts.units.units
    others = [_at_once(cuts, (units[number].step for number in order)) for order in orders]
    if len(pieces) > 1:
        others.insert(0, _at_once(cuts, (s for piece in pieces for s in _steps(cuts, piece))))
    again, effort = sum(run.again for run in cuts.units.runs), int(cuts.effort * EFFORT)
    draft, segments = replace(cuts.units.draft, numbers={}), len(pieces)

    def laid(available: float) -> Found:
        found = lay(
            way, draft, effort=effort, cells=available, others=others,
            enough=bound + bound // NEAR,
        )  # fmt: skip
        return Found(found, bound, segments, again)

    return laid


def regions(cuts: Cuts, pieces: Sequence[Piece]) -> list[Region]:
    """Return the inputs, then the segments; tensors at which these meet are in one piece."""
    orders = ((_steps(cuts, piece), cuts.frontiers[piece.stop]) for piece in pieces)
    pixels = cuts.units.pixels
    return [*_inputs(cuts), *(Rows(order, frozenset(end), pixels) for order, end in orders)]


def _at_once(cuts: Cuts, steps: Iterable[RowsStep]) -> list[Region]:
    """Return the inputs, then one region; only the outputs, and those of operators that one call
    makes, are in one piece."""
    outputs = frozenset(cuts.units.graph.ends)
    return [*_inputs(cuts), Rows(tuple(steps), outputs, cuts.units.pixels)]


def _inputs(cuts: Cuts) -> list[InputRows]:
    units = cuts.units
    read = {name for op in units.operators if op.output in units.alone for name in op.inputs}
    whole = read if units.streamed else read.union(units.graph.starts)
    return [InputRows(name, units.streamed, name in whole) for name in units.graph.starts]


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
    view, given = units.view(order, graph.ends)
    state, full = view.first, list[int]()
    used = {name: [0] for name in graph.starts}
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
