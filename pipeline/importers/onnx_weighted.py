"""Convolutions, matrix products and batch norms of ONNX."""

from __future__ import annotations

import numpy as np

from pipeline.importers import whole
from pipeline.importers.builder import pair
from pipeline.importers.float_nodes import Floats, Padding, Pair, window_counts
from pipeline.importers.layout import Value
from pipeline.importers.onnx_call import Call, Constant, Table


def output_steps(call: Call, weights: Constant, axis: int) -> Floats | None:
    """Return the weights' steps, one or one for each output channel, which is on ``axis``."""
    if weights.steps is None:
        return None
    steps = weights.steps
    if steps.size > 1 and (steps.ndim != weights.values.ndim or steps.size != steps.shape[axis]):
        raise call.refuse("weights are quantized along another axis than the output channels'")
    return steps.reshape(-1)


def sides(call: Call, size: Pair, kernel: Pair, stride: Pair, dilation: Pair) -> Padding:
    """``pads`` or ``auto_pad``: top, bottom, left, right."""
    auto, pads = call.text("auto_pad", "NOTSET"), call.many("pads")
    if auto in ("NOTSET", "VALID", ""):
        if auto == "VALID" or not pads:
            return 0, 0, 0, 0
        if len(pads) == 2:  # 1-D
            return 0, 0, pads[0], pads[1]
        if len(pads) != 4:
            raise call.refuse(f"pads {list(pads)[:8]}: four numbers are expected")
        return pads[0], pads[2], pads[1], pads[3]
    if auto not in ("SAME_UPPER", "SAME_LOWER"):
        raise call.refuse(f"auto_pad={auto} is not supported")
    found: list[int] = []
    for extent, taps, step, spread in zip(size, kernel, stride, dilation, strict=True):
        outputs = -(-extent // max(1, step))
        total = max(0, (outputs - 1) * step + (taps - 1) * spread + 1 - extent)
        less, more = total // 2, total - total // 2
        found += [less, more] if auto == "SAME_UPPER" else [more, less]
    return found[0], found[1], found[2], found[3]


def window(call: Call, name: str, spatial: int) -> Pair:
    """Return an attribute of one number for each spatial axis; 1-D is height 1."""
    found = call.many(name) or (1,) * spatial
    if len(found) != spatial:
        raise call.refuse(f"{name} {list(found)[:8]}: {spatial} numbers are expected")
    return (1, found[0]) if spatial == 1 else (found[0], found[1])


def convolved(call: Call, x: Value, weights: Constant, bias: Constant | None) -> Value:
    """``x`` (1, c, h, w) or (1, c, w)."""
    spatial = len(x.shape) - 2
    kernel = weights.floats
    if spatial not in (1, 2) or kernel.ndim != spatial + 2 or not kernel.size:
        raise call.refuse(
            f"a convolution of {list(x.shape)} with weights {list(kernel.shape)}: one or two "
            "dimensions and a batch of 1 are supported"
        )
    stride, dilation = (window(call, name, spatial) for name in ("strides", "dilations"))
    size, taps = (pair((1, *each.shape[2:])[-2:]) for each in (x, kernel))
    padding = sides(call, size, taps, stride, dilation)
    if min(*stride, *dilation) < 1:
        raise call.refuse(f"strides {list(stride)}, dilations {list(dilation)}: at least 1")
    counts = window_counts(size, taps, stride, padding, dilation)
    offsets = None if bias is None else bias.floats.reshape(-1)
    if offsets is not None and offsets.size != len(kernel):
        raise call.refuse(f"{offsets.size} biases for {len(kernel)} output channels")
    return call.builder.convolution(
        x, kernel, offsets, (1, len(kernel), *counts[2 - spatial :]), stride=stride,
        padding=padding, dilation=dilation, groups=call.integer("group", 1),
        steps=output_steps(call, weights, 0),
    )  # fmt: skip


def deconvolved(call: Call, x: Value, weights: Constant, bias: Constant | None) -> Value:
    """ConvTranspose: weights (c, c_out / groups, kh, kw)."""
    spatial, kernel, groups = len(x.shape) - 2, weights.floats, call.integer("group", 1)
    if spatial not in (1, 2) or kernel.ndim != spatial + 2 or groups < 1:
        raise call.refuse(f"a transposed convolution of {list(x.shape)} with {list(kernel.shape)}")
    stride, dilation = (window(call, name, spatial) for name in ("strides", "dilations"))
    beyond, wanted = call.many("output_padding", (0,) * spatial), call.many("output_shape")
    if len(beyond) != spatial or len(wanted) not in (0, spatial):
        raise call.refuse(f"output_padding {list(beyond)} and output_shape {list(wanted)}")
    more, upper = (0, *beyond)[-2:], call.text("auto_pad", "NOTSET") == "SAME_UPPER"
    size, taps = (pair((1, *each.shape[2:])[-2:]) for each in (x, kernel))
    given, before, made = sides(call, size, taps, (1, 1), (1, 1)), list[int](), list[int]()
    for axis in (0, 1):
        full = (size[axis] - 1) * stride[axis] + (taps[axis] - 1) * dilation[axis] + 1 + more[axis]
        first, last = given[2 * axis : 2 * axis + 2]
        if axis >= 2 - spatial and (wanted or call.text("auto_pad", "NOTSET").startswith("SAME")):
            target = wanted[axis - 2] if wanted else size[axis] * stride[axis]
            total = max(0, full - target)
            first = total // 2 if upper else total - total // 2
            last = full - target - first
        before.append(first)
        made.append(full - first - last)
    shape = (1, groups * kernel.shape[1], *made[2 - spatial :])
    return whole.transposed(
        call.builder, x, kernel, None if bias is None else bias.floats.reshape(-1), shape,
        groups, output_steps(call, weights, 1), before=pair(before), stride=stride,
        dilation=dilation,
    )  # fmt: skip


def _turned(call: Call, value: Value, option: str) -> Value:
    """Transpose a matrix where ``option`` says so."""
    if not call.integer(option, 0):
        return value
    if len(value.shape) != 2:
        raise call.refuse(f"{option} of {list(value.shape)}")
    return value.transpose((1, 0))


def gemm(call: Call) -> Value:
    """alpha * x @ weights + beta * bias"""
    alpha, beta = call.number("alpha", 1.0), call.number("beta", 1.0)
    x = _turned(call, call.x, "transA")
    if isinstance(other := call.item(1), Value):
        made = whole.product(call.builder, x, _turned(call, other, "transB"))
        bias, one = call.optional(2), np.full((), alpha)
        return call.builder.scale(made, one, np.zeros(()) if bias is None else beta * bias.floats)
    weights = matrix(call, call.constant(1), bool(call.integer("transB", 0)))
    bias = call.optional(2)
    offsets = None
    if bias is not None:
        if bias.values.size not in (1, len(weights.values)):
            raise call.refuse(f"{bias.values.size} biases for {len(weights.values)} outputs")
        offsets = np.broadcast_to(beta * bias.floats.reshape(-1), (len(weights.values),)).copy()
    return product(call, x, weights, offsets, alpha)


def matrix(call: Call, weights: Constant | None, turned: bool = False) -> Constant:
    """``weights`` (inputs, c_out), or ``turned``, as (c_out, inputs)."""
    if weights is None or weights.values.ndim != 2:
        raise call.refuse("a product with a matrix of constants is supported")
    if turned:
        return weights
    steps = weights.steps
    return Constant(weights.values.T, steps.T if steps is not None and steps.ndim == 2 else steps)


def product(
    call: Call, x: Value, weights: Constant, bias: Floats | None, alpha: float = 1.0
) -> Value:
    """``x`` (…, inputs), ``weights`` (c_out, inputs)."""
    steps = output_steps(call, weights, 0)
    scaled = None if steps is None else alpha * steps
    return call.builder.linear(x, alpha * weights.floats, bias, scaled)


def matmul(call: Call) -> Value:
    a, b = call.item(0), call.item(1)
    if isinstance(a, Value) and isinstance(b, Value):
        return whole.product(call.builder, a, b)
    if isinstance(b, Value) and isinstance(a, Constant) and a.values.ndim == 2 <= len(b.shape):
        turned = b.transpose((*range(len(b.shape) - 2), len(b.shape) - 1, len(b.shape) - 2))
        made = product(call, turned, a, None)  # x @ y is the other way round of y' @ x'
        return made.transpose((*range(len(b.shape) - 2), len(b.shape) - 1, len(b.shape) - 2))
    return product(call, call.x, matrix(call, call.optional(1)), None)


def attention(call: Call) -> Value:
    """Attention of opset 23: of heads, (1, h, n, d) each, or side by side, (1, n, h * d); a mask
    is a constant."""
    given, mask = [call.value(n) for n in range(3)], call.optional(3)
    if any(call.item(n) is not None for n in range(4, len(call.items))):
        raise call.refuse("an attention with what was before is not supported")
    if call.number("softcap", 0.0) or len(call.node.outputs) > 1:
        raise call.refuse("an attention that is capped or shows more is not supported")
    if {len(x.shape) for x in given} not in ({3}, {4}):
        raise call.refuse(f"an attention of {[list(x.shape) for x in given]}")
    heads = call.integer("q_num_heads", 0), *(call.integer("kv_num_heads", 0),) * 2
    flat = len(given[0].shape) == 3
    if flat:
        if any(x.shape[2] % max(1, h) for x, h in zip(given, heads, strict=True)):
            raise call.refuse(f"{heads} heads of {[list(x.shape) for x in given]}")
        given = [
            x.reshape((*x.shape[:2], max(1, h), x.shape[2] // max(1, h))).transpose((0, 2, 1, 3))
            for x, h in zip(given, heads, strict=True)
        ]
    few = {x.shape[1] for x in given[1:]}
    if len(few) > 1 or given[0].shape[1] % min(few):
        raise call.refuse(f"heads of {[list(x.shape) for x in given]}")
    made = whole.attention(
        call.builder, given[0], given[1], given[2], call.number("scale", 0.0) or None,
        None if mask is None else mask.values, bool(call.integer("is_causal", 0)),
    )  # fmt: skip
    if not flat:
        return made
    _, count, rows, depth = made.shape
    return made.transpose((0, 2, 1, 3)).reshape((1, rows, count * depth))


def batch_norm(call: Call) -> Value:
    """scale, bias, mean, variance."""
    scale, bias, mean, variance = (call.constant(index).floats for index in range(1, 5))
    sizes = {each.shape for each in (scale, bias, mean, variance)}
    if sizes != {call.x.shape[1:2]}:
        raise call.refuse(
            f"its constants are not one number for each channel of {list(call.x.shape)}"
        )
    if (variance < 0).any():
        raise call.refuse("has negative variances")
    factor = scale / np.sqrt(variance + call.number("epsilon", 1e-5))
    offset = bias - mean * factor
    return whole.each_channel(call.builder, call.x, factor, offset)


OPERATORS: Table = {
    "Conv": lambda call: convolved(call, call.x, call.constant(1), call.optional(2)),
    "ConvTranspose": lambda call: deconvolved(call, call.x, call.constant(1), call.optional(2)),
    "Gemm": gemm,
    "MatMul": matmul,
    "Attention": attention,
    "BatchNormalization": batch_norm,
}
