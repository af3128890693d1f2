"""Pools and means of ONNX."""

from __future__ import annotations

from pipeline.importers import float_nodes as nodes
from pipeline.importers import moving, whole
from pipeline.importers.builder import pair
from pipeline.importers.float_nodes import Padding, Pair, window_counts
from pipeline.importers.layout import Value
from pipeline.importers.onnx_call import Call, Table
from pipeline.importers.onnx_weighted import sides, window

NONE = (0, 0, 0, 0)


def image(call: Call, x: Value) -> Value:
    """(1, c, h, w), or (1, c, l) with a height of 1."""
    if len(x.image.shape) != 4:
        raise call.refuse(f"pooling of images and signals is supported, not of {list(x.shape)}")
    return x.image


def windows(call: Call, x: Value) -> tuple[Pair, Pair, Padding, Pair]:
    """(kernel, stride, padding, dilation), with what ceil_mode adds at the end."""
    size, spatial = pair(image(call, x).shape[2:]), len(x.shape) - 2
    kernel, stride = (window(call, name, spatial) for name in ("kernel_shape", "strides"))
    if min(*kernel, *stride) < 1:
        raise call.refuse(f"kernel {list(kernel)}, strides {list(stride)}: at least 1")
    apart = window(call, "dilations", spatial)
    if apart != (1, 1) and call.node.operator != "MaxPool":
        raise call.refuse("dilated averages are not supported; dilated maxima are")
    top, bottom, left, right = sides(call, size, kernel, stride, apart)
    if call.integer("ceil_mode", 0):
        more = []
        reach = ((n - 1) * spread + 1 for n, spread in zip(kernel, apart, strict=True))
        for extent, taps, step, before, after in zip(
            size, reach, stride, (top, left), (bottom, right), strict=True
        ):
            extra = -(extent + before + after - taps) % step
            begins = extent + before + after + extra - taps
            # a window that would begin in the padding at the end is left out
            more.append(0 if extra and begins >= extent + before else extra)
        bottom, right = bottom + more[0], right + more[1]
    return kernel, stride, (top, bottom, left, right), apart


def maximum(call: Call, x: Value) -> Value:
    return pooled(call, nodes.MaxPool, x, *windows(call, x))


def pooled(
    call: Call, kind: type[nodes.Pool], x: Value, kernel: Pair, stride: Pair, padding: Padding,
    dilation: Pair = (1, 1),
) -> Value:  # fmt: skip
    flat, picture = len(x.shape) == 3, image(call, x)
    rows, columns = window_counts(pair(picture.shape[2:]), kernel, stride, padding, dilation)
    shape = (*x.shape[:2], rows, columns)
    result = call.builder.pool(kind, picture, shape, kernel, stride, padding, dilation)
    return result.reshape((*x.shape[:2], columns)) if flat else result


def averaged(call: Call, x: Value) -> Value:
    """Return the call's windows of ``x``."""
    kernel, stride, padding, _ = windows(call, x)
    padded = x
    if any(padding) and call.integer("count_include_pad", 0):
        if call.integer("ceil_mode", 0):
            raise call.refuse("average pooling with ceil_mode and counted padding")
        around = [(0, 0), (0, 0), padding[:2], padding[2:]]
        padded, padding = moving.padded(call.builder, image(call, x), around), NONE
    result = pooled(call, nodes.AveragePool, padded, kernel, stride, padding)
    return result.reshape((*x.shape[:2], *result.shape[-(len(x.shape) - 2) :]))


def globally(call: Call, kind: type[nodes.Pool], x: Value) -> Value:
    size = pair(image(call, x).shape[2:])
    return pooled(call, kind, x, size, size, NONE)


def over(call: Call) -> Value:
    """Reduce*: over some axes, in whichever order the others are."""
    x, rank = call.x, len(call.x.shape)
    given = call.integers(1, "axes")
    if not given and call.integer("noop_with_empty_axes", 0):
        return x
    found = {call.axis(axis, rank) for axis in given or range(1, rank)}
    result = whole.reduced(call.builder, call.node.operator[6:], x, sorted(found))
    if not call.integer("keepdims", 1):
        return result
    return result.reshape(tuple(1 if axis in found else n for axis, n in enumerate(x.shape)))


def places(call: Call) -> Value:
    """ArgMax, ArgMin: the first of several."""
    x, axis = call.x, call.axis(call.integer("axis", 0), len(call.x.shape))
    if call.integer("select_last_index", 0) or (axis == 0 and len(x.shape) > 1):
        raise call.refuse("along the batch's axis, or the last of several, is not supported")
    found = whole.places(call.builder, x, axis, call.node.operator == "ArgMin")
    if not call.integer("keepdims", 1):
        return found
    return found.reshape((*x.shape[:axis], 1, *x.shape[axis + 1 :]))


OPERATORS: Table = {
    "ArgMax": places,
    "ArgMin": places,
    "MaxPool": lambda call: maximum(call, call.x),
    "AveragePool": lambda call: averaged(call, call.x),
    "GlobalAveragePool": lambda call: globally(call, nodes.AveragePool, call.x),
    "GlobalMaxPool": lambda call: globally(call, nodes.MaxPool, call.x),
    **{f"Reduce{kind}": over for kind in whole.REDUCTIONS},
}
