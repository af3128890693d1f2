"""The least memory, or the fewest kernel calls that fit: an order of rows, then addresses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.hardware import Hardware
from pipeline.placement.chain import ENOUGH
from pipeline.schedules.lower import Laid, lay, room, settled
from pipeline.schedules.tiles import Run, tensors_apart
from pipeline.search.joint.cuts import Cuts, Piece
from pipeline.search.joint.regions import regions
from pipeline.search.joint.units import Units
from pipeline.search.layouts import in_blocks

TRIES = 3


class Found(NamedTuple):
    """``bound``: nibbles that the order holds at most."""

    laid: Laid
    bound: int
    segments: int


def least(graph: Graph, hardware: Hardware, operators: Sequence[Operator]) -> Found:
    """As little memory as is found."""
    cuts = _cuts(graph, hardware, operators)
    bound, _ = cuts.least()
    return _placed(cuts, cuts.roomiest(bound), bound, hardware)


def within(graph: Graph, hardware: Hardware, operators: Sequence[Operator]) -> Found | None:
    """The fewest calls of kernels that the board has room for; None where that is not found."""
    cuts = _cuts(graph, hardware, operators)
    available = limit = room(graph, hardware)
    for _ in range(TRIES):
        pieces = cuts.fewest(limit)
        if pieces is None:
            break
        found = _placed(cuts, pieces, limit, hardware)
        if found.laid.cells <= available:
            return found
        limit -= found.laid.cells - available
    return None


def _cuts(
    graph: Graph, hardware: Hardware, operators: Sequence[Operator], runs: Sequence[Run] = ()
) -> Cuts:
    apart = tensors_apart(runs) | {graph.output}
    lie = in_blocks(graph, operators, hardware, apart)
    return Cuts(Units.of(graph, hardware, operators, hardware.streams_input, lie, runs))


def _placed(cuts: Cuts, pieces: Sequence[Piece], bound: int, hardware: Hardware) -> Found:
    """Segment by segment or, where that is more than ``bound``, all rows at once, if that is less;
    on kernels without scratch where the board has no room for that."""
    graph, ways = cuts.units.graph, list[Laid]()
    for in_one_piece in (True, False):
        parts = regions(cuts, pieces, in_one_piece)
        laid = lay(parts, graph, hardware, by_region=True)
        if laid.cells > room(graph, hardware):
            laid = settled(laid, parts, scratch=False)
        ways.append(laid)
        if laid.rows <= bound + bound // ENOUGH:
            break
    return Found(min(ways, key=lambda laid: (laid.rows, laid.cells)), bound, len(pieces))
