"""Windows of a convolution or a pooling, and how they are gathered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from pipeline.codegen.c.values import Span, whole
from pipeline.codegen.c.views import View
from pipeline.codegen.c.window import WindowAxis, window_axes
from pipeline.codegen.int8.job import Job
from pipeline.graph.families import Sliding
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.tensor import IntArray
from pipeline.kernels.taps import Rows
from pipeline.kernels.widened import is_flat
from pipeline.kernels.work import positions


@dataclass(frozen=True, kw_only=True)
class Windows:
    """
    Attributes:
        kernel, stride, dilation: rows, columns; ``pad``: rows above, columns to the left.
        height, width, channels: of the input, the latter as far as they are read.
        out_columns: of the output.
        row_edges, column_edges: some windows reach beyond the input's rows, or columns.
        by_words: taps are widened one by one where they do not lie side by side.
        number, piece: of pieces, and elements of each, see ``Rows``.
        in_rows: a piece lies side by side where all of it is inside.
        halves: where what is left of all pieces goes, behind their words of four elements, in
            halves of words.
        vacant: the halves after these, with weights of zero.
    """

    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pad: tuple[int, int]
    height: int
    width: int
    channels: int
    out_columns: int
    row_edges: bool
    column_edges: bool
    by_words: bool
    number: int
    piece: int
    in_rows: bool
    halves: list[int]
    vacant: list[int]

    @classmethod
    def of(cls, job: Job, view: View, some: Rows | None = None, pixels: int = 1) -> Windows:
        """
        Args:
            some: what windows are gathered from; None: all taps, one by one.
            pixels: whose windows lie beside each other; 0: elements are widened one by one.
        """
        op, (all_rows, all_columns) = job.op, positions(job.form)
        assert isinstance(op, Sliding)
        height, width, channels = job.source.shape
        some = some or Rows(range(all_rows), range(all_columns), channels, by_tap=True)
        rows, columns = len(some.rows), len(some.columns)
        out_rows, out_columns, _ = job.target.shape
        top = op.padding[0] - some.rows.start * op.dilation[0]
        left = op.padding[2] - some.columns.start * op.dilation[1]
        down, right = (out_rows - 1) * op.stride[0] - top, (out_columns - 1) * op.stride[1] - left
        some_halves = halves(some.number * (some.elements % 4), pixels) if pixels else []
        beside = view.strides[1] == channels and not (view.lookup and view.lookup.axes > 1)
        return cls(
            kernel=(rows, columns), stride=op.stride, dilation=op.dilation, pad=(top, left),
            height=height, width=width, channels=some.channels, out_columns=out_columns,
            row_edges=top > 0 or down + (rows - 1) * op.dilation[0] >= height,
            column_edges=left > 0 or right + (columns - 1) * op.dilation[1] >= width,
            by_words=some.by_tap or some.channels % 4 == 0 or not pixels,
            number=some.number, piece=some.elements,
            in_rows=not some.by_tap and not view.scattered and (columns == 1 or beside),
            halves=some_halves,
            vacant=halves(-len(some_halves) % 4, pixels, len(some_halves)),
        )  # fmt: skip

    def inside(self, top: str, left: str) -> str:
        """C of whether all of a window is."""
        rows = self.height - (self.kernel[0] - 1) * self.dilation[0]
        columns = self.width - (self.kernel[1] - 1) * self.dilation[1]
        return f"{top} >= 0 && {top} < {rows} && {left} >= 0 && {left} < {columns}"

    def axes(self, made: Sequence[Span]) -> tuple[WindowAxis, WindowAxis]:
        """Rows and columns of the outputs ``made``, of all of the input."""
        inside, padding = (whole(self.height), whole(self.width)), (self.pad[0], 0, self.pad[1], 0)
        return window_axes(made, inside, self.kernel, self.stride, padding, self.dilation)

    @property
    def lined(self) -> bool:
        """Check whether a row of the kernel may have to be put together first."""
        return not self.by_words and (self.column_edges or not self.in_rows)

    @property
    def taps(self) -> int:
        return prod(self.kernel)


def convolved_view(job: Job) -> tuple[View, bool]:
    """Rows of a convolution's input, and whether windows are pixels side by side, of the same
    numbers as those that are made."""
    if is_flat(job.operator(Conv2d), job.program.graph.tensors):
        height = job.source.shape[0]
        same = job.rows_view(rows=job.box[0].within(whole(height)))
        if same.rows_follow:
            return same, True
    return job.rows_view(), False


def halves(count: int, pixels: int, first: int = 0) -> list[int]:
    """List where ``count`` elements from ``first`` on go, of four the even ones to one word and the
    odd ones to the next: in halves of words, whose next ones are ``pixels`` further."""
    places = range(first, first + count)
    return [2 * (2 * (n // 4) + n % 4 % 2) * pixels + n % 4 // 2 for n in places]


def met(job: Job, some: Rows) -> tuple[IntArray, IntArray]:
    """(channels, elements) of the weights that are multiplied, and (channels,) what the zero point
    has with the others, which lie outside for all pixels."""
    op = job.operator(Conv2d)
    every = job.program.graph.constants[op.parameters[0]]
    rows, columns = some.rows, some.columns
    flat = every[:, rows.start : rows.stop, columns.start : columns.stop].reshape(len(every), -1)
    never = every.sum((1, 2, 3)) - flat.sum(1)
    return flat, never * job.source.zero_point
