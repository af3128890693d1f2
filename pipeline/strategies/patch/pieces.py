"""What a stage in patches and the operators after it hold, from when to when.

After the stage operators run whole. A depthwise convolution that would then need more than the
stage does runs in the place of its input, channel by channel through a buffer of one channel, as in
the inference engine that patches were published with (TinyEngine: Lin et al., MCUNet, 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.strategies.partial.lives import Piece
from pipeline.strategies.patch.stage import Stage


@dataclass(frozen=True)
class Program:
    """``stage`` first, then ``rest`` in this order; ``channelwise`` are the outputs that are made
    in the place of their inputs, channel by channel."""

    stage: Stage
    rest: tuple[Operator, ...]
    channelwise: frozenset[str]
    pieces: tuple[Piece, ...]


def program(graph: Graph, stage: Stage, rest: Sequence[Operator], limit: int) -> Program:
    """``limit``: elements that the stage holds; nothing after it should hold more."""
    pieces = in_stage(graph, stage)
    last = {name: n for n, op in enumerate(rest) for name in op.inputs} | {graph.output: len(rest)}
    found = {piece.name: piece for piece in pieces}
    shift, special = len(stage.operators) + 1, set[str]()
    held = {stage.end}
    for n, op in enumerate(rest):
        size, shape = graph.tensors[op.output].size, graph.tensors[op.output].shape
        dying = [name for name in op.inputs if last[name] == n]
        over = next((name for name in op.overwritable(graph.tensors) if name in dying), "")
        whole = sum(graph.tensors[name].size for name in held) + size
        if not over and whole > limit and _depthwise(op, graph) and op.inputs[0] in dying:
            over = op.inputs[0]
            special.add(op.output)
            ring = (*shape[:-1], 1)
            piece = Piece(op.output, "ring", ring, shift + n, shift + n)
            found[piece.name] = piece
        until = shift + last.get(op.output, n)
        found[op.output] = Piece(op.output, "whole", shape, shift + n, until, over)
        held = {name for name in held if last[name] > n} | {op.output}
    end = found[stage.end]
    until = shift + last.get(stage.end, -1)
    found[stage.end] = Piece(stage.end, "whole", end.held, end.first, max(end.last, until))
    return Program(stage, tuple(rest), frozenset(special), tuple(found.values()))


def _depthwise(op: Operator, graph: Graph) -> bool:
    """It keeps its input's shape and width, and channel c is made of channel c alone."""
    if not op.weighted or not op.channel_wise(graph.tensors):
        return False
    source, target = graph.tensors[op.inputs[0]], graph.tensors[op.output]
    return (source.shape, source.dtype.bits) == (target.shape, target.dtype.bits)


def in_stage(graph: Graph, stage: Stage) -> list[Piece]:
    """The input and the stage's output whole, every tensor between them a tile at a time."""
    number = len(stage.operators)
    pieces = [Piece(stage.start, "whole", graph.tensors[stage.start].shape, 0, number)]
    for n, op in enumerate(stage.operators, 1):
        if op.output == stage.end:
            pieces.append(Piece(op.output, "whole", graph.tensors[op.output].shape, 1, number))
            continue
        until = max(m for m, each in enumerate(stage.operators, 1) if op.output in each.inputs)
        held = (*stage.held(graph, op.output), graph.tensors[op.output].shape[2])
        pieces.append(Piece(op.output, "tile", held, n, until))
    return pieces


def most(pieces: Sequence[Piece]) -> int:
    """The most elements held at once, those that share a place counted once."""
    taken = {piece.over: piece.first for piece in pieces if piece.over}
    lives = [(p, taken.get(p.name, p.last + 1)) for p in pieces]
    return max(
        sum(p.elements for p, end in lives if p.first <= at < end or (p.first == at == p.last))
        for at in {p.first for p in pieces}
    )
