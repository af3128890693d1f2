"""Pools and means of ATen."""

from __future__ import annotations

from functools import partial
from math import prod

from pipeline.importers import float_nodes as nodes
from pipeline.importers import resampling, whole
from pipeline.importers.builder import pair
from pipeline.importers.float_nodes import Floats, Padding, Pair
from pipeline.importers.layout import Value
from pipeline.importers.moving import padded
from pipeline.importers.torch_call import Call, Table


def windows(call: Call) -> tuple[Pair, Pair, Pair]:
    """(kernel, stride, padding)"""
    kernel = pair(call.get(1, "kernel_size"))
    return kernel, pair(call.get(2, "stride", []) or kernel), pair(call.get(3, "padding", [0]))


def max_pool(call: Call) -> Value:
    kernel, stride, padding = windows(call)
    apart = pair(call.get(4, "dilation", [1]))
    reach = ((kernel[0] - 1) * apart[0] + 1, (kernel[1] - 1) * apart[1] + 1)
    sides = ceiled(call, reach, stride, padding)
    return call.builder.pool(nodes.MaxPool, call.x, call.shape, kernel, stride, sides, apart)


def average_pool(call: Call) -> Value:
    kernel, stride, padding = windows(call)
    if call.get(6, "divisor_override") is not None:
        raise call.builder.refuse("average pooling with a divisor of its own is not supported")
    sides = ceiled(call, kernel, stride, padding)
    x = call.x
    if any(padding) and call.get(5, "count_include_pad", True):
        if sides != (padding[0], padding[0], padding[1], padding[1]):
            raise call.builder.refuse(
                "average pooling with ceil_mode and counted padding is not supported"
            )
        x = padded(call.builder, x, [(0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2])
        sides = (0, 0, 0, 0)
    return call.builder.pool(nodes.AveragePool, x, call.shape, kernel, stride, sides)


def ceiled(call: Call, kernel: Pair, stride: Pair, padding: Pair) -> Padding:
    """Padding on all sides; with ceil_mode as much more at the end as the last window needs."""
    sides: list[int] = []
    for axis in (0, 1):
        extent = call.x.shape[axis + 2] if len(call.x.shape) == 4 else 1
        outputs = call.shape[axis + 2] if len(call.shape) == 4 else 1
        needed = (outputs - 1) * stride[axis] + kernel[axis] - extent - padding[axis]
        sides += [padding[axis], max(padding[axis], needed)]
    top, bottom, left, right = sides
    return top, bottom, left, right


def adaptive(call: Call, kind: type[nodes.Pool]) -> Value:
    """Adaptive pooling for outputs that divide the input: ordinary windows."""
    *_, height, width = call.x.shape
    *_, rows, columns = call.shape
    if (height % rows or width % columns) and kind is nodes.AveragePool:

        def weighed(_: int, old: int, new: int) -> Floats:
            return resampling.means(old, new)

        return whole.resized(call.builder, call.x, call.shape, weighed)
    if height % rows or width % columns:
        raise call.builder.refuse(
            f"adaptive pooling from {height}x{width} to {rows}x{columns} has windows of "
            "different sizes: choose an output that divides the input"
        )
    kernel = (height // rows, width // columns)
    return call.builder.pool(kind, call.x, call.shape, kernel, kernel, (0, 0, 0, 0))


def over(call: Call, kind: str) -> Value:
    """Reduce over some axes, see ``whole.REDUCTIONS``."""
    axes = call.get(1, "dim", None) or range(1, len(call.x.shape))
    given = [axes] if isinstance(axes, int) else list(axes)
    return whole.reduced(call.builder, kind, call.x, given).reshape(call.shape)


def norm(call: Call) -> Value:
    """aten.linalg_vector_norm(self, ord, dim): by sums of magnitudes or of squares."""
    kind = {1: "L1", 2: "L2"}.get(call.get(1, "ord", 2))
    if kind is None:
        raise call.builder.refuse("norms of order 1 and 2 are supported")
    axes = call.get(2, "dim") or range(1, len(call.x.shape))
    return whole.reduced(call.builder, kind, call.x, list(axes)).reshape(call.shape)


def places(call: Call, least: bool = False) -> Value:
    """aten.argmax, aten.argmin(self, dim, keepdim); without ``dim`` of all elements."""
    axis, x = call.get(1, "dim"), call.x
    if axis is None:
        x, axis = x.reshape((1, prod(x.shape))), 1
    axis %= len(x.shape)
    return whole.places(call.builder, x, axis, least).reshape(call.shape or (1,))


OPERATORS: Table = {
    "aten.argmax.default": places,
    "aten.argmin.default": partial(places, least=True),
    "aten.max_pool2d.default": max_pool,
    "aten.max_pool2d_with_indices.default": max_pool,
    "aten.avg_pool2d.default": average_pool,
    "aten.adaptive_avg_pool2d.default": partial(adaptive, kind=nodes.AveragePool),
    "aten._adaptive_avg_pool2d.default": partial(adaptive, kind=nodes.AveragePool),
    "aten.adaptive_max_pool2d.default": partial(adaptive, kind=nodes.MaxPool),
    "aten.mean.dim": partial(over, kind="Mean"),
    "aten.sum.dim_IntList": partial(over, kind="Sum"),
    "aten.amax.default": partial(over, kind="Max"),
    "aten.amin.default": partial(over, kind="Min"),
    "aten.logsumexp.default": partial(over, kind="LogSumExp"),
    "aten.linalg_vector_norm.default": norm,
}
