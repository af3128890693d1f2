"""A network pixel by pixel: when each is made in an order of some operators, and when it dies."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from re import finditer
from typing import NamedTuple, Self

import numpy as np

from pipeline.graph.access import Operand, Window
from pipeline.graph.operator import Operator, Tensors
from pipeline.graph.tensor import IntArray, Tensor
from pipeline.kernels.int4 import crops
from pipeline.plan.reads import NEVER, positions, read_times
from pipeline.search.view.whole import Span, View


class Pixels(NamedTuple):
    """A tensor as a grid of pixels. A vector of n elements is one row of n pixels."""

    rows: int
    columns: int
    channels: int
    nibbles_per_element: int

    @classmethod
    def of(cls, tensor: Tensor) -> Self:
        height, width, channels = (1, tensor.size, 1) if len(tensor.shape) == 1 else tensor.shape
        return cls(height, width, channels, max(1, tensor.dtype.bits // 4))

    @property
    def number(self) -> int:
        return self.rows * self.columns

    @property
    def each(self) -> int:
        """Nibbles of a pixel: the paper's f, counted in nibbles instead of channels."""
        return self.channels * self.nibbles_per_element

    @property
    def total(self) -> int:
        return self.number * self.each


class Layer:
    """An operator that slides over one tensor; its unit is one pixel of what it makes."""

    def __init__(self, op: Operator, tensors: Tensors) -> None:
        self.op, self.tensors = op, tensors
        self.source, self.target = tensors[op.inputs[0]], tensors[op.output]
        self.inputs, self.outputs = Pixels.of(self.source), Pixels.of(self.target)

    @property
    def groups(self) -> int:
        """Channels of the input that share no output: then channels may be made one by one."""
        apart = self.op.depthwise(self.tensors) or (
            not self.op.weighted and self.op.channel_wise(self.tensors)
        )
        return self.inputs.channels if apart else 1

    @property
    def operand(self) -> Operand:
        """Return the operand that reads the activation."""
        return self.op.terms(self.tensors)[0].operands[0]

    @property
    def windows(self) -> tuple[Window, ...]:
        """Along rows and columns."""
        rows = () if len(self.source.shape) == 3 else (Window(None, 1),)
        return (*rows, *self.operand.windows)[:2]

    @property
    def peelable(self) -> bool:
        """The paper's restricted case (section 3), where peeling a side of the output kills a side
        of the input: square kernel, stride 1, valid padding, and channels that grow."""
        side = self.windows[0].count
        return (
            self.windows == (Window(0, side), Window(1, side))
            and side > 1
            and self.target.shape[:2] == tuple(n - side + 1 for n in self.source.shape[:2])
            and self.outputs.each > self.inputs.each
        )

    @cached_property
    def lasts(self) -> tuple[IntArray, ...]:
        """Find, for each row and each column of the input, the last of the output that reads it;
        NEVER if none does."""
        return tuple(
            read_times(
                Operand("", (replace(window, axis=None if window.axis is None else 0),)),
                ((0, outs),), np.arange(outs), [range(extent)], True,
            )
            for window, outs, extent in zip(self.windows, self.outputs, self.inputs, strict=False)
        )  # fmt: skip

    def fit_beside(self, nibbles: int) -> bool:
        """Input and output fit whole: then order and overlap do not matter."""
        return self.inputs.total + self.outputs.total <= nibbles


@dataclass(frozen=True)
class PixelView(View):
    """
    Attributes:
        known: orders that were looked at.
    """

    known: dict[Hashable, "Order"] = field(default_factory=dict, compare=False, repr=False)

    def layer(self, number: int) -> Layer:
        return Layer(self.operators[number], self.tensors)

    def pixels(self, tensor: str) -> Pixels:
        return Pixels.of(self.tensors[tensor])

    def part(self, span: Span) -> tuple[Operator, ...]:
        return self.operators[slice(*span)]

    def by_byte(self, span: Span) -> bool:
        """Check whether it makes bytes, or wider, of the first tensor's halves of bytes."""
        widths = [self.pixels(op.output).nibbles_per_element for op in self.part(span)]
        return span.first == 0 and self.pixels(self.names[0]).nibbles_per_element == 1 < min(widths)

    def spans(self) -> list[Span]:
        """Parts between which one tensor is live: a layer, a block with branches, or a depthwise
        convolution with the 1 × 1 ones around it."""
        numbers = range(len(self.operators) + 1)
        ends = sorted({0, *(n for n in numbers if len(self.live[n]) == 1), numbers[-1]})
        kinds = "".join(self._kind(*each) for each in pairwise(ends))
        return [Span(ends[a], ends[b]) for a, b in (m.span() for m in finditer("1?d1?|.", kinds))]

    def _kind(self, first: int, stop: int) -> str:
        """Name the kind of a part: ``d`` a depthwise layer, ``1`` a 1 × 1 one, ``.`` any other."""
        op = self.operators[first]
        if stop - first > 1:
            return "."
        if op.slides and op.depthwise(self.tensors):
            return "d"
        windows = op.terms(self.tensors)[0].operands[0].windows[:2]
        alone = all(window.axis is not None and window.count == 1 for window in windows)
        return "1" if alone and op.mixes_channels(self.tensors) else "."


@dataclass(frozen=True, eq=False)
class Order:
    """
    Attributes:
        turn: makes ``units`` when they are asked for.
        starts: the first unit of each step.
        groups: of channels, made one after the other, each from one of the input.
        row_major: one layer's pixels, row by row: what large ones hold is known without ``units``.
    """

    view: PixelView
    span: Span
    turn: Callable[[], IntArray]
    starts: IntArray
    groups: int = 1
    row_major: bool = False

    @cached_property
    def units(self) -> IntArray:
        """(n, 4): the operator, the row and the column of each pixel in turn, and which of its
        groups of channels."""
        return self.turn()

    @property
    def operators(self) -> tuple[Operator, ...]:
        return self.view.part(self.span)

    @property
    def layer(self) -> Layer | None:
        """If it is one operator that slides over what one tensor has, all channels at once."""
        alone = len(self.operators) == len(self.starts) == 1 and self.operators[0].slides
        return self.view.layer(self.span.first) if alone else None

    @property
    def peak(self) -> int:
        """The most nibbles live at once when any output may lie in any free nibble."""
        apart = self.row_major and not self.view.by_byte(self.span)
        most = self._grown_by_rows() if apart else self.grown.max()
        return self.view.nibbles(self.span.first) + max(0, int(most))

    def _grown_by_rows(self) -> int:
        """Return the most of ``grown``: rows of the input die with a row of the output, columns
        with a pixel of it."""
        layer = self.view.layer(self.span.first)
        rows, columns = (
            np.bincount(last[last != NEVER], minlength=outs)
            for last, outs in zip(layer.lasts, layer.outputs[:2], strict=True)
        )
        dies = layer.source.name in self.view.dying(self.span)
        fin, fout = layer.inputs.each * dies, layer.outputs.each
        unread = layer.inputs.number - rows.sum() * columns.sum()
        before = fout * len(columns) * np.arange(len(rows))
        before -= fin * (columns.sum() * (np.cumsum(rows) - rows) + unread)
        kinds, kind = np.unique(rows, return_inverse=True)
        within = fout * np.arange(1, len(columns) + 1) - fin * np.outer(kinds, np.cumsum(columns))
        return int((before + within.max(axis=1)[kind]).max())

    @cached_property
    def grown(self) -> IntArray:
        """Nibbles more than at first that are live as each unit is stored.

        A unit reads all its inputs before it writes, so the inputs that die with unit n are free
        already when its outputs are stored. The paper (section 3.2) frees them after the write; its
        peak is up to k fin higher. Of halves of bytes that bytes are written over, both have to
        be dead: counted of the first tensor, which lies row-major; the others lie as they may.
        """
        sizes = [self.view.pixels(op.output).each // self.groups for op in self.operators]
        written = np.array(sizes)[self.units[:, 0] - self.span.first]
        freed = np.zeros(len(self.units) + 1, dtype=np.int64)
        for name, last in self.last.items():
            each, times = self.view.pixels(name).each // self.groups, last.reshape(-1)
            if name == self.view.names[0] and self.view.by_byte(self.span):
                halves = np.repeat(times, each)
                each, times = 2, np.maximum(halves[: len(halves) // 2 * 2 : 2], halves[1::2])
                freed[halves[-1] + 1 :][:1] += len(halves) % 2
            freed += each * np.bincount(times + 1, minlength=len(freed))[: len(freed)]
        return np.cumsum(written) - np.cumsum(freed)[1:]

    @cached_property
    def ranks(self) -> dict[str, IntArray]:
        """Find when each pixel is made, shape (h, w, groups); NEVER if nothing needs it."""
        found = dict[str, IntArray]()
        for number, op in enumerate(self.operators, self.span.first):
            found[op.output] = self._grid(op.output)
            times = np.flatnonzero(self.units[:, 0] == number)
            found[op.output][tuple(self.units[times, 1:].T)] = times
        return found

    def _grid(self, tensor: str) -> IntArray:
        return np.full((*self.view.pixels(tensor)[:2], self.groups), NEVER)

    @cached_property
    def last(self) -> dict[str, IntArray]:
        """Find when each pixel of what dies is read last, shape (h, w, groups), or can be
        overwritten if it is made and not read; NEVER (-1) if it was there before and is not read;
        the number of units if not before the end."""
        end, tensors = len(self.units), self.view.tensors
        found = {name: self._grid(name) for name in self.view.dying(self.span)}
        for op in self.operators:
            for operand in op.reads(tensors):
                if (last := found.get(operand.tensor)) is None:
                    continue
                if not by_pixel(op, tensors):
                    last[:] = 0 if operand.tensor in op.overwritable(tensors) else end
                    continue
                for group in range(self.groups):
                    read = read_at(op, operand, tensors, self.ranks[op.output][..., group])
                    np.maximum(last[..., group], read, out=last[..., group])
        for name in found.keys() & self.ranks.keys():
            ranks, last = self.ranks[name], found[name]
            last[ranks == NEVER] = end
            last[:] = np.where(last == NEVER, ranks + 1, last)
        return found


def read_at(
    op: Operator, operand: Operand, tensors: Tensors, times: IntArray, last: bool = True
) -> IntArray:
    """Find when each pixel of an operand is read last, or first, by an operator that makes its own
    at ``times`` (h', w'); NEVER (-1), or a number above any, where it is not read. -> (h, w)."""
    source = tensors[operand.tensor]
    times = times if len(tensors[op.output].shape) == 3 else times[0]
    box = tuple((0, extent) for extent in times.shape)
    axes = 2 if len(source.shape) == 3 else 1
    spatial = Operand(operand.tensor, operand.windows[:axes])
    grid = [np.arange(extent) for extent in source.shape[:axes]]
    return read_times(spatial, box, times, grid, last).reshape(Pixels.of(source)[:2])


def along(window: Window, outs: int, extent: int) -> IntArray:
    """Tabulate, along one axis, whether outputs read inputs, (outs, extent)."""
    reads = np.zeros((outs, extent + 2), dtype=bool)  # with padding
    index = np.clip(positions(window, ((0, outs),) * 2), -1, extent) + 1
    reads[np.arange(outs)[:, None], index] = True
    return reads[:, 1:-1]


def by_pixel(op: Operator, tensors: Tensors) -> bool:
    """Check whether pixels are made one after the other, each of what it needs. Otherwise all are
    made at once, over an input that they may take the place of or apart."""
    return op.slides or op.element_wise or crops(op, tensors)
