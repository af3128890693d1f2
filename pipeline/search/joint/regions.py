"""Segments as regions."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.schedules.lower import Region
from pipeline.schedules.rows import Given, Rows, RowsStep, RowStep
from pipeline.search.joint.cuts import ALL, Cuts, Piece


def regions(cuts: Cuts, pieces: Sequence[Piece], in_one_piece: bool = True) -> list[Region]:
    """The input, then the segments.

    Args:
        in_one_piece: tensors at which segments meet are; else only the output, and those of
            operators that one call makes, and the segments are one region.
    """
    graph, pixels = cuts.units.graph, cuts.units.pixels
    at_once = (op for op in cuts.units.operators if op.output in cuts.units.alone)
    whole = any(graph.input in op.inputs for op in at_once)
    streamed = cuts.units.streamed
    begin = Given(graph.input, streamed, whole or not streamed)
    orders = [_steps(cuts, piece) for piece in pieces]
    if not in_one_piece:
        together = tuple(step for order in orders for step in order)
        return [begin, Rows(together, frozenset([graph.output]), pixels)]
    ends = [frozenset(cuts.frontiers[piece.stop]) for piece in pieces]
    return [begin, *(Rows(order, end, pixels) for order, end in zip(orders, ends, strict=True))]


def _steps(cuts: Cuts, piece: Piece) -> tuple[RowsStep, ...]:
    if piece.together == ALL:
        return (RowStep("all", cuts.units.operators[piece.start]),)
    return tuple(cuts.units.units[number].step for number in cuts.order(piece))
