"""Where the pieces of a schedule lie: what shares an address, how large it is when, and buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.graph.graph import Graph
from pipeline.graph.tensor import DType
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Buffer
from pipeline.plan.vocabulary import packed as row_major
from pipeline.strategies.arrangement import WORD, round_up
from pipeline.strategies.partial.lives import Piece
from pipeline.strategies.partial.profiles import Profile, packed
from pipeline.strategies.skyline import Block


@dataclass(frozen=True)
class Layout:
    """Buffers by name, the address of what else was asked for, the arena's size in nibbles and the
    most nibbles held at once; no arena is smaller."""

    buffers: dict[str, Buffer]
    extra: int
    cells: int
    bound: int


def lay_out(
    pieces: Sequence[Piece],
    graph: Graph,
    hardware: Hardware,
    accumulator_bits: int,
    extra: int = 0,
) -> Layout:
    """``extra``: nibbles needed beside the first piece before the first step."""
    profiles, home = _profiles(pieces, graph, hardware, accumulator_bits)
    arriving = [Profile((Block(extra, 0, 0),), WORD)] if extra else []
    found = packed([*profiles, *arriving])
    buffers = {
        piece.name: _buffer(piece, graph, hardware, accumulator_bits, found.addresses[number])
        for piece, number in zip(pieces, home, strict=True)
    }
    return Layout(buffers, found.addresses[-1] if extra else 0, found.cells, found.bound)


def _profiles(
    pieces: Sequence[Piece], graph: Graph, hardware: Hardware, accumulator_bits: int
) -> tuple[list[Profile], list[int]]:
    """Profiles, and for each piece the number of its own: pieces in one place are one profile."""
    number: dict[str, int] = {}
    parts: list[list[Block]] = []
    aligns: list[int] = []
    for piece in pieces:
        bits = _bits(piece, graph, accumulator_bits)
        align = max(2 * hardware.alignment_bytes, WORD if piece.form == "scratch" else bits // 4)
        size = round_up(piece.elements * max(1, bits // 4), align)
        if piece.over:
            at = number[piece.name] = number[piece.over]
            above = parts[at][-1]
            if above.size == size:
                parts[at][-1] = above._replace(last=max(above.last, piece.last))
            else:  # both are there at the step that turns one into the other
                turn = above.last + (above.size > size)
                parts[at][-1] = above._replace(last=turn - 1)
                if turn <= piece.last:
                    parts[at].append(Block(size, turn, piece.last))
            aligns[at] = max(aligns[at], align)
        else:
            number[piece.name] = len(parts)
            parts.append([Block(size, piece.first, piece.last)])
            aligns.append(align)
    profiles = [Profile(tuple(each), align) for each, align in zip(parts, aligns, strict=True)]
    return profiles, [number[piece.name] for piece in pieces]


def _bits(piece: Piece, graph: Graph, accumulator_bits: int) -> int:
    if piece.form == "scratch":
        return 8
    return accumulator_bits if piece.form == "sums" else graph.tensors[piece.tensor].dtype.bits


def _buffer(
    piece: Piece, graph: Graph, hardware: Hardware, accumulator_bits: int, base: int
) -> Buffer:
    """Of an axis that is not held whole, index i lies at i modulo what is held."""
    tensor, bits = graph.tensors[piece.tensor], _bits(piece, graph, accumulator_bits)
    memory = hardware.activation_memory
    if piece.form == "scratch":
        place = row_major(piece.held, bits, base)
        return Buffer(piece.name, "", memory, piece.held, bits, place, "scratch")
    shape, place = tensor.shape, row_major(piece.held, bits, base)
    if piece.held != shape:
        rings = (n if n < extent else 0 for n, extent in zip(piece.held, shape, strict=True))
        place = replace(place, wrap=tuple(rings))
    buffer = Buffer(piece.name, piece.tensor, memory, shape, bits, place)
    if piece.form == "sums":
        step = step_before_calibration(piece.tensor, graph, bits)
        buffer = replace(buffer, role="accumulator", step=step)
    return buffer


def step_before_calibration(tensor: str, graph: Graph, bits: int) -> int:
    """1, exact, where every sum fits an accumulator of ``bits``; else 0: to be chosen."""
    low, high = graph.producer(tensor).partial_sums(graph.tensors, graph.constants)
    width = DType(bits, signed=True)
    return 1 if width.minimum <= low and high <= width.maximum else 0
