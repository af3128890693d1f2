"""Safe offsets at which an output may begin above an input that dies, where a kernel goes pixel by
pixel, in order or from the last one, and reads the inputs of each before it writes that."""

from collections.abc import Iterable
from itertools import pairwise
from math import prod
from typing import NamedTuple

import numpy as np

from pipeline.graph.access import Operand, Window
from pipeline.graph.operators.placing import Rearrange
from pipeline.graph.tensor import IntArray
from pipeline.kernels.form import Form

NEVER = 1 << 60
"""Nibbles: more than any arena has."""


class SafeOffset(NamedTuple):
    """Nibbles from the beginning of a dying input to that of the output that a kernel writes over
    it.

    Attributes:
        forwards: at most so many, where pixels are computed in order; may be fewer than none.
        backwards: at least so many, where they are computed from the last one.
        at: others that are possible in any order.
        delay: a pixel is written once the inputs of so many more have been read.
        aside_bytes: that the kernel keeps of its output meanwhile.
    """

    forwards: int
    backwards: int = NEVER
    at: tuple[int, ...] = ()
    delay: int = 0
    aside_bytes: int = 0

    def apart(self, over: int, under: int, backwards: bool = True) -> tuple[tuple[int, int], ...]:
        """Return the open intervals that an output of ``over`` nibbles may not begin in, above an
        input of ``under``; ``backwards``: it may be computed from the last pixel."""
        low = max(self.forwards, -over)
        high = min(self.backwards, under) if backwards else under
        ends = (low, *(at for at in self.at if low < at < high), high)
        return tuple((a, b) for a, b in pairwise(ends) if a < b)

    def shared(self, over: int, under: int) -> int:
        """Return the most nibbles that an output of ``over`` can have in common with an input of
        ``under``."""
        least, most = sorted((0, under - over))
        begins = (min(self.forwards, most), max(self.backwards, least), *self.at)
        return max(0, *(min(begin + over, under) - max(begin, 0) for begin in begins))


def in_its_place(form: Form, tensor: str) -> SafeOffset | None:
    """Return where the output of an operator that puts elements elsewhere may begin so that
    ``tensor`` is in its place, or moves to the front; None where it can not."""
    before, made = form.op.in_place(form.graph.tensors).get(tensor), form.op.output
    whole = form.covers(made) and form.in_one_piece(made)
    if before is None or not (whole and form.in_one_piece(tensor)):
        return None
    if isinstance(form.op, Rearrange):
        return SafeOffset(0)
    return SafeOffset(-NEVER, at=(-before * form.out.bits // 4,))


def pixel_offset(form: Form, tensor: str, delay: int = 0) -> SafeOffset | None:
    """Return the safe at which nothing unread is overwritten; None where the two can share nothing.

    Of a step that makes all, both lie row-major, side by side, and pixels are computed in order;
    of one that makes a row of an image it is said of that and any row of the input. Output pixel n
    ends no higher than the first element that one after the next ``delay`` reads; from the last
    one, it begins no lower than where one before the ``delay`` before it has read to.
    """
    op, tensors = form.op, form.graph.tensors
    operands = [operand for operand in op.reads(tensors) if operand.tensor == tensor]
    if form.partial or len(operands) != 1:
        return None
    read, out, ends = tensors[tensor].shape, form.target.shape, None
    if form.out.extents[0] == 1:
        window = operands[0].windows[1]
        by_rows = form.in_packed_rows(tensor) and form.whole_rows(op.output)
        if not by_rows or (window.axis, window.divide) != (1, 1):
            return None
        read, out = (1, *read[1:]), (1, *out[1:])
        rows, columns = np.zeros(1, dtype=np.int64), _first(window, read[1], out) * read[2]
        ends = _ends(window, read[1], out[1]) * read[2]
    elif form.covers(op.output) and form.in_one_piece(tensor) and form.in_one_piece(op.output):
        rows, columns = _first_read(operands[0], read, out)
    else:
        return None
    bits, made = form.parts[tensor].bits // 4, form.out.bits // 4
    pixel, over, under = (made * out[-1], made * prod(out), bits * prod(read))
    # pixel n of the input's beginning less the output's, of rows and within one
    ahead, width, backwards = 1 + delay, len(columns), NEVER
    down = bits * rows - pixel * width * np.arange(len(rows))
    across = bits * columns - pixel * np.arange(width)
    row, column = divmod(ahead, width)
    here = down[row : row + 1] + across[column:].min(initial=NEVER)
    least = min(here.min(initial=NEVER), down[row + 1 :].min(initial=NEVER) + across.min())
    forwards = min(under, int(least) + delay * pixel)
    if ends is not None:
        earlier = (bits * ends - pixel * np.arange(width))[: max(0, width - ahead)]
        backwards = int((earlier - ahead * pixel).max(initial=-over))
    safe = SafeOffset(forwards, backwards, (), delay, ahead * pixel // 2)
    return safe if safe.shared(over, under) else None


def channel_offset(form: Form, tensor: str) -> SafeOffset | None:
    """Return ``pixel_offset`` where a kernel makes a row of an image channel by channel, each from
    the same channel of the input, which it reads wholly before it writes: pixels that begin
    together keep the channels apart."""
    if (
        form.partial
        or form.out.extents[0] != 1
        or not form.in_packed_rows(tensor)
        or not form.whole_rows(form.op.output)
        or not form.op.channel_wise(form.graph.tensors)
        or form.parts[tensor].bits != form.out.bits
    ):
        return None
    element, (_, columns, channels) = form.out.bits // 4, form.target.shape
    over = element * columns * channels
    under = element * form.graph.tensors[tensor].shape[1] * channels
    return SafeOffset(-over, NEVER, tuple(sorted({0, under - over})), 0, columns * element // 2)


def best_offset(form: Form, tensor: str, ways: Iterable[SafeOffset | None]) -> SafeOffset | None:
    """Choose, for a row, what saves most, then what leaves most places, then the least delay."""
    over, under = (
        form.parts[name].bits // 4 * prod(form.graph.tensors[name].shape[1:])
        for name in (form.op.output, tensor)
    )
    return max(
        (way for way in ways if way is not None),
        key=lambda way: (
            way.shared(over, under) - 2 * way.aside_bytes,
            -sum(high - low for low, high in way.apart(over, under)),
            -way.delay,
        ),
        default=None,
    )


def _ends(window: Window, extent: int, outs: int) -> IntArray:
    """Along one axis, of each window the index after the last one inside; of one outside, 0."""
    start = np.arange(outs) * window.stride + window.offset
    reach = start + (window.count - 1) * window.dilation
    last = reach - -(-np.maximum(reach - (extent - 1), 0) // window.dilation) * window.dilation
    return np.where((last >= 0) & (last >= start), last + 1, 0)


def _first_read(
    operand: Operand, shape: tuple[int, ...], out: tuple[int, ...]
) -> tuple[IntArray, IntArray]:
    """Return for each output pixel the number of the first element that it reads: what that is of
    its first axis, and of its place on the others, row-major."""
    rows = np.zeros(out[0] if len(out) > 1 else 1, dtype=np.int64)
    columns, stride = np.zeros(out[1:-1], dtype=np.int64), 1
    for window, extent in reversed(list(zip(operand.windows, shape, strict=True))):
        first, axis = stride * _first(window, extent, out), window.axis
        if axis is None or not 0 < axis < len(out) - 1:
            rows = rows + first
        else:
            columns = columns + first.reshape(
                [-1 if n == axis else 1 for n in range(1, len(out) - 1)]
            )
        stride *= extent
    return rows, columns.reshape(-1)


def _first(window: Window, extent: int, out: tuple[int, ...]) -> IntArray:
    """Along one axis, the first index inside; of a window outside of all, its end."""
    moves = window.axis is not None and window.axis < len(out) - 1
    numbers = np.arange(out[window.axis] if moves and window.axis is not None else 1)
    start = numbers // window.divide * window.stride + window.offset
    missing = np.maximum(-start, 0)
    inside = start + -(-missing // window.dilation) * window.dilation
    return np.asarray(np.minimum(inside, extent), dtype=np.int64)
