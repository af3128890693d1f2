"""How one step computes one operator, said before addresses are known."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from math import gcd
from typing import Literal

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.tensor import Tensor
from pipeline.plan.maps import Affine, Rows, packed
from pipeline.plan.vocabulary import Buffer, Compute, Index, Slice

Spread = Literal["strides", "rows", "table"]


@dataclass(frozen=True)
class Part:
    """What a step takes of a tensor, and how that lies, wherever it begins.

    Attributes:
        extents: indices at once along each axis; at an edge there may be fewer.
        strides: nibbles from one index to the next; of ``rows`` along all axes but the first; of a
            ``table`` none.
        bits: of an element.
        spread: by strides, rows anywhere, or elements anywhere.
        rings: along an axis that the part may go around: the modulus; 0: it doesn't.
        multiples: along each axis whether it begins at a multiple of its extent.
        step: of an accumulator, see ``Buffer``.
    """

    extents: tuple[int, ...]
    strides: tuple[int, ...]
    bits: int
    spread: Spread = "strides"
    rings: tuple[int, ...] = ()
    multiples: tuple[bool, ...] = ()
    step: int = 1

    def __post_init__(self) -> None:
        rank = len(self.extents)
        object.__setattr__(self, "rings", self.rings or (0,) * rank)
        object.__setattr__(self, "multiples", self.multiples or (True,) * rank)

    @classmethod
    def packed(cls, extents: tuple[int, ...], bits: int, step: int = 1) -> Part:
        """Row-major, side by side."""
        return cls(extents, packed(extents, bits).strides, bits, step=step)

    @classmethod
    def of(cls, piece: Slice, buffer: Buffer) -> Part:
        extents = tuple(map(min, piece.size, buffer.shape))
        multiples = tuple(
            _multiple(low, extent) for low, extent in zip(piece.lo, piece.size, strict=True)
        )
        layout, rings = buffer.map, (0,) * len(extents)
        strides: tuple[int, ...] = ()
        spread: Spread = "table"
        if isinstance(layout, Affine):
            axes = zip(piece.lo, extents, layout.rings, strict=True)
            rings = tuple(0 if _stays_in(*axis) else axis[2] for axis in axes)
            strides, spread = layout.strides, "strides"
        elif isinstance(layout, Rows):
            strides, spread = layout.strides, "rows"
        return cls(extents, strides, buffer.bits, spread, rings, multiples, buffer.step)

    @property
    def straight(self) -> bool:
        """By strides alone: neither rows nor elements lie anywhere, and no ring is gone around."""
        return self.spread == "strides" and not any(self.rings)

    @property
    def in_one_piece(self) -> bool:
        """Row-major, side by side."""
        side_by_side = packed(self.extents, self.bits).strides
        return self.straight and all(
            extent == 1 or stride == wanted
            for extent, stride, wanted in zip(self.extents, self.strides, side_by_side, strict=True)
        )

    @property
    def evenly_spaced(self) -> bool:
        """Of an image: rows follow each other as pixels do, and a pixel's channels lie side by
        side."""
        if not self.straight or len(self.extents) != 3:
            return False
        (rows, columns, channels), (row, pixel, channel) = self.extents, self.strides
        return (rows == 1 or row == columns * pixel) and (
            channels == 1 or channel == max(1, self.bits // 4)
        )


@dataclass(frozen=True)
class Form:
    """
    Attributes:
        parts: of the output and of each activation that the step reads, by tensor.
        partial: it adds to accumulators.
        overlaps: activations whose cells the output may share.
    """

    op: Operator
    graph: Graph = field(repr=False)
    parts: Mapping[str, Part]
    partial: bool = False
    overlaps: frozenset[str] = frozenset()

    @classmethod
    def whole(cls, op: Operator, graph: Graph, overlaps: Collection[str] = ()) -> Form:
        """All of the output at once, tensors in one piece."""
        names = (*dict.fromkeys(op.inputs), op.output)
        tensors = [graph.tensors[name] for name in names]
        parts = {t.name: Part.packed(t.shape, t.dtype.bits) for t in tensors}
        return cls(op, graph, parts, overlaps=frozenset(overlaps))

    @classmethod
    def of(
        cls,
        step: Compute,
        buffers: Mapping[str, Buffer],
        graph: Graph,
        overlaps: Collection[str] = (),
    ) -> Form:
        """Of a step; wherever its buffers begin doesn't matter."""
        parts = {
            buffers[piece.buffer].tensor: Part.of(piece, buffers[piece.buffer])
            for piece in (*step.ins, step.out)
            if buffers[piece.buffer].role != "constant"
        }
        op = graph.operator(step.op)
        return cls(op, graph, parts, step.partial, frozenset(overlaps))

    def with_channels(self, channels: int) -> Form:
        """A pass of a loop that makes so many of the output's channels: of inputs that follow the
        output's channels it reads as many, of others all."""
        op, last = self.op, len(self.target.shape) - 1
        following = {
            operand.tensor
            for operand in op.reads(self.graph.tensors)
            if operand.windows[-1].axis == last and operand.windows[-1].count == 1
        }
        parts = {
            name: _narrowed(part, channels) if name in following | {op.output} else part
            for name, part in self.parts.items()
        }
        return replace(self, parts=parts)

    def adding(self, channels: int, bits: int) -> Form:
        """A pass of a loop that adds so many channels of the inputs to accumulators of ``bits``,
        whose steps are not chosen yet where those are narrow."""
        step = 1 if bits == 32 else 0
        parts = {name: _narrowed(self.parts[name], channels) for name in self.op.inputs}
        parts[self.op.output] = Part.packed(self.target.shape, bits, step)
        return replace(self, parts=parts, partial=True)

    @property
    def source(self) -> Tensor:
        """The first input."""
        return self.graph.tensors[self.op.inputs[0]]

    @property
    def target(self) -> Tensor:
        return self.graph.tensors[self.op.output]

    @property
    def out(self) -> Part:
        return self.parts[self.op.output]

    def part(self, tensor: str) -> Part:
        """Of an activation that the step reads."""
        return self.parts[tensor]

    def covers(self, tensor: str, axes: slice = slice(None)) -> bool:
        """Whether all of ``tensor`` is taken along ``axes``."""
        return self.parts[tensor].extents[axes] == self.graph.tensors[tensor].shape[axes]

    def even(self, tensor: str, axis: int) -> bool:
        """Whether each pass takes equally many along ``axis``, from multiples of that on."""
        part, extent = self.parts[tensor], self.graph.tensors[tensor].shape[axis]
        return part.multiples[axis] and extent % part.extents[axis] == 0


def _narrowed(part: Part, channels: int) -> Part:
    """Packed, with fewer channels."""
    extents = (*part.extents[:-1], min(channels, part.extents[-1]))
    return Part.packed(extents, part.bits, part.step)


def _multiple(low: Index, extent: int) -> bool:
    if isinstance(low, int):
        return low % extent == 0 if extent else True
    return not any(n % extent for n in (low.const, *(factor for _, factor in low.coef)))


def _stays_in(low: Index, extent: int, ring: int) -> bool:
    """Whether ``extent`` indices from ``low`` on never go around a ring."""
    if not ring:
        return True
    if isinstance(low, int):
        return max(low, 0) % ring + extent <= ring
    step = gcd(ring, *(factor for _, factor in low.coef))
    return low.const % step + extent <= step
