"""Segments as regions."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.schedules.lower import Region
from pipeline.schedules.rows import Resident, Rows, Streamed
from pipeline.search.joint.cuts import Cuts, Piece


def regions(cuts: Cuts, pieces: Sequence[Piece], in_one_piece: bool = True) -> list[Region]:
    """The input, then the segments.

    Args:
        in_one_piece: tensors at which segments meet are; else only the output, and the segments
            are one region.
    """
    graph, every, pixels = cuts.units.graph, cuts.units.units, cuts.units.pixels
    begin = (Streamed if cuts.units.streamed else Resident)(graph.input)
    orders = [tuple(every[number].step for number in cuts.order(piece)) for piece in pieces]
    if not in_one_piece:
        together = tuple(step for order in orders for step in order)
        return [begin, Rows(together, frozenset([graph.output]), pixels)]
    ends = [frozenset(cuts.frontiers[piece.stop]) for piece in pieces]
    return [begin, *(Rows(order, end, pixels) for order, end in zip(orders, ends, strict=True))]
