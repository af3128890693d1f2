"""A slice of a buffer as a kernel sees it: pointer, strides in bytes, how to load and store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.codegen.int8.values import Span, Value
from pipeline.errors import ThimbleError
from pipeline.plan.vocabulary import Affine, Buffer

Strides = tuple[int, ...]


@dataclass(frozen=True)
class View:
    """Elements from the low corner of a box on.

    Attributes:
        name: of the pointer in the kernel.
        array: the C array that the elements lie in.
        offset: of the corner, in bytes; along a ring it is that of index 0.
        strides: bytes from one index to the next along each axis.
        rings: the axis' index counts modulo this, 0: plain.
        box: the indices.
        bits, signed: of an element.
        step: what one unit of an accumulator stands for (see ``Buffer.step``).
    """

    name: str
    array: str
    offset: Value
    strides: Strides
    rings: tuple[int, ...]
    box: tuple[Span, ...]
    bits: int
    signed: bool
    constant: bool = False
    step: int = 1

    @property
    def bytes(self) -> int:
        return self.bits // 8

    @property
    def type(self) -> str:
        """Wider elements are loaded byte by byte: an address need not be a multiple of them."""
        return "int8_t" if self.bits == 8 and self.signed else "uint8_t"

    @property
    def pointer(self) -> str:
        cast = f"({self.type} *)" if self.type != "uint8_t" and not self.constant else ""
        return f"{cast}&{self.array}[{self.offset}]"

    def load(self, at: str) -> str:
        if self.bits == 8:
            return f"{self.name}[{at}]"
        kind = f"{'' if self.signed else 'u'}{self.bits}"
        return f"nn_load_{kind}(&{self.name}[{at}])"

    def store(self, at: str, value: str) -> str:
        if self.bits == 8:
            return f"{self.name}[{at}] = ({self.type})({value});"
        return f"nn_store_{self.bits}(&{self.name}[{at}], (uint{self.bits}_t)({value}));"

    def added(self, at: str, more: str) -> str:
        """What an accumulator holds after one more contribution: rounded and saturating where a
        unit stands for several."""
        if self.step == 1:
            return f"{self.load(at)} + {more}"
        low, high = -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        return f"nn_clip({self.load(at)} + nn_mean({more}, {self.step}), {low}, {high})"

    def total(self, at: str) -> str:
        """The sum that an accumulator stands for."""
        return self.load(at) if self.step == 1 else f"{self.load(at)} * {self.step}"

    def named(self, name: str) -> View:
        return replace(self, name=name)


def byte_strides(buffer: Buffer) -> tuple[Affine, Strides]:
    """The buffer's map and its strides in bytes.

    Raises:
        ThimbleError: for a table, or for elements that do not begin at bytes.
    """
    layout = buffer.map
    if not isinstance(layout, Affine):
        raise ThimbleError(
            f"{buffer.name}: code for this core has affine addresses, the plan has a table; "
            "try strategy=ordinary"
        )
    if buffer.bits < 8 or layout.base % 2 or any(stride % 2 for stride in layout.strides):
        raise ThimbleError(
            f"{buffer.name}: code for this core has elements of whole bytes, the plan has "
            f"{buffer.bits} bits; try quantize=int8, or hardware=arduino target=host"
        )
    return layout, tuple(stride // 2 for stride in layout.strides)


def view(
    name: str, buffer: Buffer, array: str, box: Sequence[Span], signed: bool, ring_axes: int = 0
) -> View:
    """``box`` of ``buffer``, which lies in the C array ``array``.

    Args:
        ring_axes: how many of the leading axes the kernel can follow around a ring.
    """
    layout, strides = byte_strides(buffer)
    offset, rings = Value(layout.base // 2), []
    wraps = layout.wrap or (0,) * len(strides)
    for axis, (part, stride, ring) in enumerate(zip(box, strides, wraps, strict=True)):
        if not ring:
            offset, ring = offset + part.start * stride, 0
        elif part.start.stays_in(ring, part.most):
            offset, ring = offset + part.start % ring * stride, 0
        elif axis >= ring_axes:
            raise ThimbleError(
                f"{buffer.name}: code for this core cannot follow a ring along axis {axis} here"
            )
        rings.append(ring)
    return View(
        name, array, offset, strides, tuple(rings), tuple(box), buffer.bits, signed,
        step=buffer.step,
    )  # fmt: skip


def extent_bytes(buffer: Buffer) -> tuple[int, int]:
    """First byte and the one after the last of all that the buffer's elements occupy."""
    layout, strides = byte_strides(buffer)
    wraps = layout.wrap or (0,) * len(strides)
    low = high = layout.base // 2
    for extent, stride, ring in zip(buffer.shape, strides, wraps, strict=True):
        far = (min(extent, ring or extent) - 1) * stride
        low, high = low + min(0, far), high + max(0, far)
    return low, high + buffer.bits // 8
