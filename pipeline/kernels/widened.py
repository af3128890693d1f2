"""Convolutions by windows of some pixels: which, and how many of them are computed together."""

from abc import abstractmethod
from collections.abc import Callable
from math import prod

from pipeline.graph.operator import Tensors
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.fast import Fast, convolution
from pipeline.kernels.form import Form
from pipeline.kernels.taps import Rows


class Widened(Fast):
    """Convolution by windows of some pixels, which are widened once for all channels."""

    def window(self, form: Form) -> Rows:
        """Return what windows are gathered from: of sums, of the channels that a pass adds."""
        channels = form.given.extents[2] if form.partial else 0
        return Rows.of(convolution(form), form.graph, channels)

    @abstractmethod
    def together(self, form: Form) -> int:
        """Return how many pixels of the step are computed together."""

    def tail(self, form: Form) -> int:
        """Pixels of the last block: what is left where none may be made twice, else as many as of
        the others."""
        together = self.together(form)
        left = prod(form.out.extents[:2]) % together if form.partial or form.overlaps else 0
        return left or together

    def blocks(self, form: Form) -> tuple[tuple[int, int], ...]:
        """Return how many pixels are computed together, and how often."""
        together = self.together(form)
        number = -(-prod(form.out.extents[:2]) // together)
        return (together, number - 1), (self.tail(form), 1)

    def table_passes(self, form: Form, cached_bytes: int = 0) -> int:
        return sum(number for _, number in self.blocks(form))


def is_flat(op: Conv2d, tensors: Tensors) -> bool:
    """Check whether a window is a pixel, that of the same number."""
    kernel = tensors[op.parameters[0]].shape[1:3]
    return (*kernel, *op.stride, *op.padding) == (1, 1, 1, 1, 0, 0, 0, 0)


def row_by_row(form: Form) -> bool:
    """Check whether pixels that are computed together would not be evenly spaced otherwise."""
    op = convolution(form)
    flat = is_flat(op, form.graph.tensors)
    return not form.follow(op.output) or (flat and not form.follow(op.inputs[0]))


def evenly_spaced(form: Form) -> int:
    """Pixels of the step: of one row, where rows do not follow each other, or may be fewer at an
    edge."""
    rows, columns, _ = form.out.extents
    name = form.op.output
    together = form.even(name, 0) and form.follow(name) and form.follow(form.op.inputs[0])
    return rows * columns if together else columns


def cheapest(pixels: int, most: int, instructions: Callable[[int], float]) -> int:
    """Choose how many of ``pixels``, at ``most``, to compute together, where the last block is as
    large as the others."""
    costs = {p: -(-pixels // p) * instructions(p) for p in range(1, min(most, pixels) + 1)}
    return min(costs, key=lambda p: (costs[p], -p))
