"""Pools and means of ONNX."""

from __future__ import annotations

from pipeline.importers import float_nodes as nodes
from pipeline.importers.builder import pair
from pipeline.importers.float_nodes import Padding, Pair, window_counts
from pipeline.importers.layout import Value
from pipeline.importers.onnx_call import Call, Item, Stored, Table
from pipeline.importers.onnx_weighted import sides, window

NONE = (0, 0, 0, 0)


def image(call: Call, x: Value) -> Pair:
    """The height and width of (1, c, h, w)."""
    if len(x.shape) != 4:
        raise call.refuse(f"pooling of images is supported, not of {list(x.shape)}")
    return pair(x.shape[2:])


def windows(call: Call, x: Value) -> tuple[Pair, Pair, Padding]:
    """(kernel, stride, padding), with what ceil_mode adds at the end."""
    size = image(call, x)
    kernel, stride = window(call, "kernel_shape", 2), window(call, "strides", 2)
    if min(*kernel, *stride) < 1:
        raise call.refuse(f"kernel {list(kernel)}, strides {list(stride)}: at least 1")
    if window(call, "dilations", 2) != (1, 1):
        raise call.refuse("dilated pooling is not supported")
    top, bottom, left, right = sides(call, size, kernel, stride, (1, 1))
    if call.integer("ceil_mode", 0):
        more = [
            -(extent + before + after - taps) % step
            for extent, taps, step, before, after in zip(
                size, kernel, stride, (top, left), (bottom, right), strict=True
            )
        ]
        # a window that would begin in the padding at the end is left out
        more = [
            0 if extra and extent + before + after + extra - taps >= extent + before else extra
            for extra, extent, taps, before, after in zip(
                more, size, kernel, (top, left), (bottom, right), strict=True
            )
        ]
        bottom, right = bottom + more[0], right + more[1]
    return kernel, stride, (top, bottom, left, right)


def maximum(call: Call) -> Item:
    """Of integers it is the integers' maximum: the same."""
    found = call.item(0)
    x = found.value if isinstance(found, Stored) else call.x
    kernel, stride, padding = windows(call, x)
    shape = (*x.shape[:2], *window_counts(image(call, x), kernel, stride, padding))
    result = call.builder.pool(nodes.MaxPool, x, shape, kernel, stride, padding)
    if not isinstance(found, Stored):
        return result
    if found.affine is None:
        raise call.refuse("its input's quantization is not known yet")
    return Stored(call.builder.mark(result, found.affine), found.affine, found.unsigned)


def average(call: Call) -> Value:
    x = call.x
    kernel, stride, padding = windows(call, x)
    shape = (*x.shape[:2], *window_counts(image(call, x), kernel, stride, padding))
    if any(padding) and call.integer("count_include_pad", 0):
        if call.integer("ceil_mode", 0):
            raise call.refuse("average pooling with ceil_mode and counted padding")
        x = call.builder.pad(x, [(0, 0), (0, 0), padding[:2], padding[2:]])
        padding = NONE
    return call.builder.pool(nodes.AveragePool, x, shape, kernel, stride, padding)


def whole(kind: type[nodes.Pool]) -> Table:
    def pooled(call: Call) -> Value:
        size = image(call, call.x)
        return call.builder.pool(kind, call.x, (*call.x.shape[:2], 1, 1), size, size, NONE)

    return {"": pooled}


def mean(call: Call) -> Value:
    """ReduceMean over the height and width of an image, in whichever order its axes are."""
    x, rank = call.x, len(call.x.shape)
    axes = call.integers(1, "axes") or ()
    over = sorted(call.axis(axis, rank) for axis in axes)
    kept = [axis for axis in range(1, rank) if axis not in over]
    if rank != 4 or len(over) != 2 or len(kept) != 1 or 0 in over:
        raise call.refuse(
            f"a mean over axes {list(axes)[:8]} of {list(x.shape)}: over height and width of an "
            "image is supported"
        )
    turned = x.transpose((0, kept[0], *over))
    size = pair(turned.shape[2:])
    shape = (1, turned.shape[1], 1, 1)
    pooled = call.builder.pool(nodes.AveragePool, turned, shape, size, size, NONE)
    if not call.integer("keepdims", 1):
        return pooled.reshape((1, turned.shape[1]))
    return pooled.reshape(tuple(1 if axis in over else n for axis, n in enumerate(x.shape)))


OPERATORS: Table = {
    "MaxPool": maximum,
    "AveragePool": average,
    "GlobalAveragePool": whole(nodes.AveragePool)[""],
    "GlobalMaxPool": whole(nodes.MaxPool)[""],
    "ReduceMean": mean,
}
