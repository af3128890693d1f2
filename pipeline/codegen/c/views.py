"""A slice of a buffer as a kernel sees it: pointer, strides in bytes, how to load and store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from math import prod

from pipeline.codegen.c.expressions import minus, offset, product, total
from pipeline.codegen.c.places import Layout, Lookup
from pipeline.codegen.c.values import Span, Value
from pipeline.codegen.constants import read
from pipeline.codegen.statements import PLACE, Argument
from pipeline.errors import ThimbleError
from pipeline.plan.vocabulary import Buffer

Strides = tuple[int, ...]

FRAME = "nn_frame"
"""Name of what points at an input that lies outside of the arena, where nothing is written."""


@dataclass(frozen=True)
class View:
    """Elements from the low corner of a box on.

    Attributes:
        name: of the pointer in the kernel.
        array: the C array that the elements lie in.
        offset: of the corner, in bytes; along a ring it is that of index 0, and without the axes
            that are looked up.
        strides: bytes from one index to the next along each axis.
        rings: the axis' index counts modulo this, 0: plain.
        box: the indices.
        bits, signed: of an element.
        step: what one unit of an accumulator stands for (see ``Buffer.step``).
        lookup: how the first axes' indices lead to a place, if not by strides.
        accessor: of constants, see ``Array``.
        stride_names: what C calls the strides that are not one number in all calls, by axis.
    """

    name: str
    array: str
    offset: Value
    strides: Strides
    rings: tuple[int, ...]
    box: tuple[Span, ...]
    _: KW_ONLY
    bits: int
    signed: bool
    constant: bool = False
    step: int = 1
    lookup: Lookup | None = None
    stride_names: Mapping[int, str] = field(default_factory=dict)
    accessor: str = ""

    @property
    def bytes(self) -> int:
        return self.bits // 8

    @property
    def empty(self) -> bool:
        """Check whether nothing is read from there, such as by windows that lie in the padding."""
        return not all(part.most for part in self.box)

    @property
    def type(self) -> str:
        """Wider elements are loaded byte by byte: an address need not be a multiple of them, but
        for constants."""
        bits = self.bits if self.constant else 8
        return f"int{bits}_t" if self.bits == bits and self.signed else f"uint{bits}_t"

    @property
    def pointer(self) -> Argument:
        if self.constant and self.offset.known:  # as another than those into the arena
            return Argument(f"&{self.array}[{self.offset}]")
        const = "const " * (self.array == FRAME)
        cast = f"({const}{self.type} *)" if self.type != "uint8_t" and not self.constant else ""
        return Argument(f"{cast}&{self.array}[{PLACE}]", self.offset)

    def load(self, at: str) -> str:
        if self.bits == 8 or self.constant:
            return read(self.accessor, f"{self.name}[{at}]")
        kind = f"{'' if self.signed else 'u'}{self.bits}"
        return f"nn_load_{kind}(&{self.name}[{at}])"

    def store(self, at: str, value: str) -> str:
        if self.bits == 8:
            return f"{self.name}[{at}] = ({self.type})({value});"
        return f"nn_store_{self.bits}(&{self.name}[{at}], (uint{self.bits}_t)({value}));"

    def added(self, at: str, more: str) -> str:
        """Return what an accumulator holds after one more contribution: rounded and saturating
        where a unit stands for several."""
        if self.step == 1:
            return f"{self.load(at)} + {more}"
        low, high = -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        return f"nn_clip({self.load(at)} + nn_mean({more}, {self.step}), {low}, {high})"

    def total(self, at: str) -> str:
        """Return the sum that an accumulator stands for."""
        return self.load(at) if self.step == 1 else f"{self.load(at)} * {self.step}"

    def named(self, name: str) -> View:
        return replace(self, name=name)

    @property
    def scattered(self) -> bool:
        """Check whether some pixels' channels do not lie side by side."""
        return self.lookup is not None and self.lookup.scattered

    @property
    def rows_follow(self) -> bool:
        """Check whether an image's rows follow each other as pixels do."""
        rows, columns, _ = (part.most for part in self.box)
        plain = self.lookup is None and not self.rings[0]
        return plain and (rows == 1 or self.strides[0] == columns * self.strides[1])

    @property
    def places(self) -> Argument:
        """The argument for the entries from the corner on, of the type ``const nn_place_t *``."""
        assert self.lookup is not None
        first = Value(self.lookup.first)
        for axis, part in enumerate(self.box[: self.lookup.axes]):
            first = first + part.start * prod(self.lookup.extents[axis + 1 :])
        return Argument(f"&nn_row_places[{PLACE}]", first)

    def at(self, indices: Sequence[str], starts: Sequence[str]) -> str:
        """C of the offset of an element, or of the first channel of a pixel, from ``pointer``.

        Args:
            indices: of each axis, or of all but the last one.
            starts: those of the view's corner.
        """
        given = list(zip(indices, starts, strict=True))
        begins = self.entry(indices, starts) if self.lookup else "0"
        if self.scattered and len(given) == len(self.strides):
            return f"nn_element({begins}, {indices[-1]}, {self.bytes})"
        axes = self.lookup.axes if self.lookup else 0
        parts = (
            offset(index, start, self.rings[axis], self.stride_names.get(axis, self.strides[axis]))
            for axis, (index, start) in enumerate(given)
            if axis >= axes
        )
        return total(begins, *parts)

    def pixel(self, name: str, indices: Sequence[str], starts: Sequence[str], more: str) -> str:
        """C of a variable ``name`` for a pixel, from which ``channel`` reads.

        Args:
            more: the offset of the channel that is its number 0.
        """
        if self.scattered:
            return f"const nn_place_t {name} = {self.entry(indices, starts)};"
        return f"const {self.type} *{name} = &{self.name}[{total(self.at(indices, starts), more)}];"

    def channel(self, pixel: str, number: str, base: str, stride: int, start: str = "0") -> str:
        """C of the value of channel ``base`` + ``number`` of a pixel.

        Args:
            stride: bytes from one channel to the next, ``base`` being in the pixel's pointer.
            start: a channel that the pointer is behind by.
        """
        if self.scattered:
            return self.load(f"nn_element({pixel}, {total(base, number)}, {self.bytes})")
        return self.named(pixel).load(product(minus(number, start), stride))

    def entry(self, indices: Sequence[str], starts: Sequence[str]) -> str:
        """C of what the table says of a row or a pixel."""
        assert self.lookup is not None
        extents = self.lookup.extents
        parts = (
            product(minus(index, start), prod(extents[axis + 1 :]))
            for axis, (index, start) in enumerate(zip(indices, starts, strict=True))
            if axis < len(extents)
        )
        return f"nn_place(&{self.name}_places[{total(*parts)}])"


def view(
    name: str, buffer: Buffer, layout: Layout, array: str, box: Sequence[Span], signed: bool,
    ring_axes: int = 0,
) -> View:  # fmt: skip
    """``box`` of ``buffer``, which lies in the C array ``array``.

    Args:
        ring_axes: how many of the leading axes the kernel can follow around a ring.
    """
    offset, rings = Value(layout.base), []
    parts = zip(box, layout.strides, layout.rings, strict=True)
    for axis, (part, stride, ring) in enumerate(parts):
        if layout.lookup and (layout.lookup.scattered or axis < layout.lookup.axes):
            ring = 0  # elements of scattered pixels are counted from the first one
        elif not ring:
            offset, ring = offset + part.start * stride, 0
        elif part.start.stays_in(ring, part.most):
            offset, ring = offset + part.start % ring * stride, 0
        elif axis >= ring_axes:
            raise ThimbleError(
                f"{buffer.name}: code for this core cannot follow a ring along axis {axis} here"
            )
        rings.append(ring)
    return View(
        name, array, offset, layout.strides, tuple(rings), tuple(box),
        bits=buffer.bits, signed=signed, step=buffer.step, lookup=layout.lookup,
    )  # fmt: skip
