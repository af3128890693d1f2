"""The least memory, or the fastest that fits a limit: an order of rows, then addresses."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.hardware import Hardware
from pipeline.placement.place import EFFORT
from pipeline.schedules.lower import Laid, lay, room
from pipeline.schedules.patches import Run, tensors_apart
from pipeline.search.joint.cuts import NEVER, Cuts, Piece
from pipeline.search.joint.fastest import Fastest
from pipeline.search.joint.patches import patched
from pipeline.search.joint.regions import regions
from pipeline.search.layouts import in_blocks, rows_able
from pipeline.search.view.rows import Units

TRIES = 3


class Found(NamedTuple):
    """``bound``: nibbles that the order holds at most; ``repeated``: multiply–accumulates."""

    laid: Laid
    bound: int
    segments: int
    repeated: int = 0


def least(
    graph: Graph,
    hardware: Hardware,
    operators: Sequence[Operator],
    repeated: int = 0,
    effort: float = 1.0,
) -> Found:
    """As little memory as is found.

    Args:
        repeated: multiply–accumulates that may be done again.
        effort: see ``Joint``.
    """
    runs = patched(graph, hardware, operators, repeated) if repeated else ()
    best: Found | None = None
    for some in (runs, ()) if runs else ((),):
        cuts = cuts_of(graph, hardware, operators, some, effort=effort)
        bound, pieces = cuts.least(best.laid.rows - 1 if best else NEVER)
        if pieces:
            pieces = cuts.roomiest(bound) or pieces
            found = _placed(cuts, pieces, bound, hardware, room(graph, hardware))
            best = min([best, found] if best else [found], key=lambda each: each.laid.rows)
    assert best is not None
    return best


def within(
    graph: Graph,
    hardware: Hardware,
    operators: Sequence[Operator],
    available: int,
    most: float,
    effort: float = 1.0,
) -> Found | None:
    """The fastest in ``available`` nibbles, scratch included; None where none is found that takes
    less than ``most`` modelled cycles; ``effort``: see ``Joint``."""
    cuts, limit = cuts_of(graph, hardware, operators, effort=effort), available
    fastest = Fastest(cuts, hardware)
    for _ in range(TRIES):
        way = fastest.within(limit)
        if way is None or way.cost >= most:
            break
        cuts = fastest.cuts
        if not way.last.isdisjoint(cuts.units.pixels):
            cuts = cuts_of(graph, hardware, operators, last=way.last, effort=effort)
        found = _placed(cuts, way.pieces, limit, hardware, inf)
        if found.laid.cells <= available:
            return found
        limit -= found.laid.cells - available
    return None


def cuts_of(
    graph: Graph,
    hardware: Hardware,
    operators: Sequence[Operator],
    runs: Sequence[Run] = (),
    last: frozenset[str] = frozenset(),
    effort: float = 1.0,
) -> Cuts:
    """``last``: tensors with channels last, besides the output and those of ``runs``."""
    alone = [op for op in operators if not rows_able(op, graph, hardware)]
    plain = last.union(*({*op.inputs, op.output} for op in alone))
    lie = in_blocks(graph, operators, hardware, plain | tensors_apart(runs) | {graph.output})
    made = frozenset(op.output for op in alone)
    streams = hardware.streams_input
    units = Units(graph, hardware, operators, streams, lie, runs, alone=made)
    return Cuts(units, effort=effort)


def _placed(
    cuts: Cuts,
    pieces: Sequence[Piece],
    bound: int,
    hardware: Hardware,
    available: float,
) -> Found:
    """Segment by segment or, where that is more than ``bound``, all rows at once, if that is less;
    on slower kernels where their scratch is more than ``available``."""
    graph, ways, effort = cuts.units.graph, list[Laid](), int(cuts.effort * EFFORT)
    for in_one_piece in (True, False):
        parts = regions(cuts, pieces, in_one_piece)
        laid = lay(parts, graph, hardware, effort=effort, cells=available)
        ways.append(laid)
        if laid.rows <= bound or len(pieces) == 1:
            break
    best = min(ways, key=lambda laid: (laid.rows, laid.cells))
    return Found(best, bound, len(pieces), sum(run.again for run in cuts.units.runs))
