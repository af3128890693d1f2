"""Form of a step: how it computes one operator, said before addresses are known."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import gcd
from typing import Literal

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.tensor import Tensor
from pipeline.kernels.own_image import own_image
from pipeline.plan.maps import Affine, Blocks, Rows, Table, packed
from pipeline.plan.vocabulary import Buffer, Compute, Index, Slice

Spread = Literal["strides", "rows", "blocks", "table"]
SPREADS: dict[type, Spread] = {Affine: "strides", Rows: "rows", Blocks: "blocks", Table: "table"}


@dataclass(frozen=True)
class Part:
    """Part of a tensor that a step takes, and how that lies, wherever it begins.

    Attributes:
        extents: indices at once along each axis; at an edge there may be fewer.
        strides: nibbles from one index to the next; of ``rows`` along all axes but the first; of
            ``blocks`` and a ``table`` none.
        bits: of an element.
        spread: by strides, rows anywhere, rows anywhere in blocks of ``pixels``, or elements
            anywhere: channels side by side in each pixel, or some ``scattered``.
        rings: along each axis the modulus that indices count with; 0: none.
        around: along each axis whether the part may go around the ring.
        multiples: along each axis whether it begins at a multiple of its extent.
        step: of an accumulator, see ``Buffer``.
    """

    extents: tuple[int, ...]
    strides: tuple[int, ...]
    bits: int
    spread: Spread = "strides"
    rings: tuple[int, ...] = ()
    around: tuple[bool, ...] = ()
    multiples: tuple[bool, ...] = ()
    step: int = 1
    pixels: int = 0
    scattered: bool = False

    def __post_init__(self) -> None:
        rank = len(self.extents)
        object.__setattr__(self, "rings", self.rings or (0,) * rank)
        object.__setattr__(self, "around", self.around or (False,) * rank)
        object.__setattr__(self, "multiples", self.multiples or (True,) * rank)

    @classmethod
    def packed(cls, extents: tuple[int, ...], bits: int, step: int = 1) -> Part:
        """Row-major, side by side."""
        return cls(extents, packed(extents, bits).strides, bits, step=step)

    @classmethod
    def of(cls, piece: Slice, buffer: Buffer) -> Part:
        layout, rings = buffer.map, buffer.wrap
        strides = layout.strides if isinstance(layout, Affine | Rows) else ()
        pixels = min(layout.pixels, buffer.shape[1]) if isinstance(layout, Blocks) else 0
        scattered = isinstance(layout, Table) and buffer.scattered_pixels > 0
        how = strides, buffer.bits, SPREADS[type(layout)], buffer.step, pixels, scattered
        return _taken(piece.lo, piece.size, buffer.shape, rings, how)


@lru_cache(1 << 12)
def _taken(
    lows: tuple[Index, ...], sizes: tuple[int, ...], shape: tuple[int, ...],
    rings: tuple[int, ...], how: tuple[tuple[int, ...], int, Spread, int, int, bool],
) -> Part:  # fmt: skip
    """``how`` it lies: strides, bits, spread, step, pixels and whether some are scattered; steps
    are many and alike."""
    strides, bits, spread, step, pixels, scattered = how
    axes = [
        (*_clipped(low, size, extent), extent, ring)
        for low, size, extent, ring in zip(lows, sizes, shape, rings, strict=True)
    ]
    return Part(
        tuple(min(size, extent) for _, size, extent, _ in axes), strides, bits, spread=spread,
        rings=tuple(ring if ring < extent else 0 for *_, extent, ring in axes),
        around=tuple(not _stays_in(low, size, ring) for low, size, _, ring in axes),
        multiples=tuple(_multiple(low, size) for low, size, *_ in axes),
        step=step, pixels=pixels, scattered=scattered,
    )  # fmt: skip


@dataclass(frozen=True)
class Form:
    """
    Attributes:
        parts: of the output and of each activation that the step reads, by tensor.
        partial: it adds to accumulators.
        overlaps: activations whose cells the output may share.
        aside: there it may keep some of a row aside, and make that from its end.
        in_place: it begins where they begin.
        zeros, scattered_pixels: by tensor, the share of elements that are 0, and of pixels that do
            not lie in one piece, where that is known.
    """

    op: Operator
    graph: Graph = field(repr=False)
    parts: Mapping[str, Part]
    partial: bool = False
    overlaps: frozenset[str] = frozenset()
    aside: bool = False
    in_place: bool = False
    zeros: Mapping[str, float] = field(default_factory=dict)
    scattered_pixels: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def whole(cls, op: Operator, graph: Graph, overlaps: Collection[str] = ()) -> Form:
        """Return all of the output at once, tensors in one piece."""
        names = (*dict.fromkeys(op.inputs), op.output)
        tensors = [graph.tensors[name] for name in names]
        parts = {t.name: Part.packed(t.shape, t.dtype.bits) for t in tensors}
        return cls(op, graph, parts, overlaps=frozenset(overlaps))

    @classmethod
    def of(
        cls, step: Compute, buffers: Mapping[str, Buffer], graph: Graph,
        overlaps: Collection[str] = (),
    ) -> Form:  # fmt: skip
        """Return the form of a step; where its buffers begin doesn't matter. One that makes a tile
        is of an image of its own."""
        if not overlaps and (own := own_image(step, buffers, graph)):
            step, buffers, graph = own
        parts = {
            buffers[piece.buffer].tensor: Part.of(piece, buffers[piece.buffer])
            for piece in (*step.ins, step.out)
            if buffers[piece.buffer].role != "constant"
        }
        op = graph.operator(step.op)
        return cls(op, graph, parts, step.partial, frozenset(overlaps))

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

    @property
    def given(self) -> Part:
        """Return what the step takes of the first input."""
        return self.parts[self.op.inputs[0]]

    @property
    def scattered(self) -> bool:
        """Check whether rows in blocks are among what it takes and makes."""
        return any(part.spread == "blocks" for part in self.parts.values())

    def covers(self, tensor: str, axes: slice = slice(None)) -> bool:
        """Check whether all of ``tensor`` is taken along ``axes``."""
        part, shape = self.parts[tensor], self.graph.tensors[tensor].shape
        return part.extents[axes] == shape[axes] and all(part.multiples[axes])

    def even(self, tensor: str, axis: int) -> bool:
        """Check whether each pass takes equally many along ``axis``, from a multiple of that on."""
        part, extent = self.parts[tensor], self.graph.tensors[tensor].shape[axis]
        return part.multiples[axis] and extent % part.extents[axis] == 0

    def in_one_piece(self, tensor: str) -> bool:
        """Check whether all of ``tensor``, of which this may be a part, is row-major and packed."""
        part, shape = self.parts[tensor], self.graph.tensors[tensor].shape
        if part.spread != "strides" or any(part.rings):
            return False
        axes = zip(shape, part.strides, packed(shape, part.bits).strides, strict=True)
        return all(extent == 1 or stride == wanted for extent, stride, wanted in axes)

    def in_rows(self, tensor: str) -> bool:
        """Check whether an image's rows lie anywhere, but the pixels of each evenly spaced, and the
        channels that are taken of a pixel side by side."""
        part, shape = self.parts[tensor], self.graph.tensors[tensor].shape
        if not part.strides or len(shape) != 3 or part.rings[1] or part.around[2]:
            return False
        return part.extents[2] == 1 or part.strides[-1] == part.bits // 4

    def in_packed_rows(self, tensor: str) -> bool:
        """Check whether rows lie anywhere, but all that is in each of them side by side."""
        part, shape = self.parts[tensor], self.graph.tensors[tensor].shape
        return (
            self.in_rows(tensor)
            and not part.rings[2]
            and (shape[1] == 1 or part.strides[-2] == shape[2] * part.bits // 4)
            and (shape[2] == 1 or part.strides[-1] == part.bits // 4)
        )

    def follow(self, tensor: str) -> bool:
        """Check whether the rows that are taken of an image follow each other as pixels do, so that
        all pixels are evenly spaced."""
        part, shape = self.parts[tensor], self.graph.tensors[tensor].shape
        if not self.in_rows(tensor) or part.around[0]:
            return False
        if part.extents[0] == 1:
            return True
        return part.spread == "strides" and part.strides[0] == shape[1] * part.strides[1]

    def whole_rows(self, tensor: str) -> bool:
        """Check whether rows are taken of an image, each whole and in one piece."""
        return (
            len(self.graph.tensors[tensor].shape) == 3
            and self.covers(tensor, slice(1, 3))
            and self.in_packed_rows(tensor)
        )

    def alike_blocks(self) -> bool:
        """Check whether it takes one row of each tensor but of vectors, all in blocks of as many
        pixels; of operators element by element all have as many channels, too."""
        extents, pixels = self.out.extents, self.out.pixels
        return pixels > 0 and all(
            (part.extents[:2], part.pixels) == ((1, extents[1]), pixels)
            and (part.extents == extents or not self.op.element_wise)
            and self.covers(name, slice(1, 3))
            for name, part in self.parts.items()
            if any(n > 1 for n in self.graph.tensors[name].shape[:-1])
        )

    def evenly_spaced(self, tensor: str) -> bool:
        """Check whether all of an image's rows follow each other as pixels do, and the channels
        that are taken of a pixel lie side by side."""
        part, shape = self.parts[tensor], self.graph.tensors[tensor].shape
        if not self.in_rows(tensor) or part.spread != "strides" or part.rings[0]:
            return False
        return shape[0] == 1 or part.strides[0] == shape[1] * part.strides[1]


def _clipped(low: Index, size: int, extent: int) -> tuple[Index, int]:
    """Return the first index and the size of what is inside of an axis, where no loop moves it."""
    if not isinstance(low, int):
        return low, size
    first = min(max(low, 0), extent)
    return first, max(0, min(low + size, extent) - first)


def _multiple(low: Index, extent: int) -> bool:
    if isinstance(low, int):
        return low % extent == 0 if extent else True
    return not any(n % extent for n in (low.const, *(factor for _, factor in low.coef)))


def _stays_in(low: Index, extent: int, ring: int) -> bool:
    """Check whether ``extent`` indices from ``low`` on never go around a ring."""
    if not ring:
        return True
    if isinstance(low, int):
        return max(low, 0) % ring + extent <= ring
    step = gcd(ring, *(factor for _, factor in low.coef))
    return low.const % step + extent <= step
