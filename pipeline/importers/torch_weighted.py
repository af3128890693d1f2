"""Convolutions, linear layers and batch norms of ATen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pipeline.importers import whole
from pipeline.importers.builder import pair
from pipeline.importers.float_nodes import Padding
from pipeline.importers.layout import Value
from pipeline.importers.torch_call import Call, Table, required


def convolution(call: Call) -> Value:
    """aten.convolution; 1-D as 2-D of height 1."""
    stride, padding, dilation = (call.get(index, "") for index in (3, 4, 5))
    if call.get(6, "transposed", False):
        return _spread(call, stride, padding, dilation, call.get(8, "groups", 1))
    return _convolved(call, stride, padding, dilation, call.get(8, "groups", 1))


def conv(call: Call) -> Value:
    """aten.conv2d, aten.conv1d; what is odd of padding "same" goes to the end."""
    taps = required(call, 1, "weight").shape[2:]
    stride, padding, dilation, groups = _window(call, 3, 4, 5, 6)
    if isinstance(padding, str):
        spreads = dilation if len(dilation) == len(taps) else [*dilation] * len(taps)
        totals = [spread * (n - 1) for n, spread in zip(taps, spreads, strict=True)]
        around = [n for total in totals for n in (total // 2, total - total // 2)]
        padding = around if padding == "same" else [0]
    return _convolved(call, stride, padding, dilation, groups)


def _window(call: Call, *places: int) -> list[Any]:
    """Return stride, padding, dilation and groups."""
    ones = [1] * (required(call, 1, "weight").ndim - 2)
    usual = {"stride": ones, "padding": [0], "dilation": ones, "groups": 1}
    return [call.get(n, *each) for n, each in zip(places, usual.items(), strict=True)]


def _convolved(
    call: Call, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int
) -> Value:
    weights, bias = required(call, 1, "weight"), call.constant(2, "bias")
    spatial, steps = weights.ndim - 2, call.steps(1, "weight")
    if spatial not in (1, 2) or len(call.x.shape) != spatial + 2:
        raise call.builder.refuse(
            f"a convolution of {list(call.x.shape)} with weights {list(weights.shape)}: one or two "
            "dimensions and a batch of 1 are supported"
        )
    ones = [1] * (spatial == 1)
    return call.builder.convolution(
        call.x, weights, bias, call.shape,
        padding=(0, 0, padding[0], padding[-1]) if ones else four(padding),
        stride=pair([*ones, *stride]), dilation=pair([*ones, *dilation]), groups=groups,
        steps=steps,
    )  # fmt: skip


def conv_transpose(call: Call) -> Value:
    """aten.conv_transpose1d, aten.conv_transpose2d"""
    return _spread(call, *_window(call, 3, 4, 7, 6))


def _spread(
    call: Call, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int
) -> Value:
    """Height is 1 in one dimension."""
    ones, zero = ((n,) * (required(call, 1, "weight").ndim == 3) for n in (1, 0))
    fields = {
        "stride": pair((*ones, *stride)), "dilation": pair((*ones, *dilation)),
        "before": pair((*zero, *padding)),
    }  # fmt: skip
    return whole.transposed(
        call.builder, call.x, required(call, 1, "weight"), call.constant(2, "bias"), call.shape,
        groups, call.steps(1, "weight", 1), **fields,
    )  # fmt: skip


def four(padding: Sequence[int]) -> Padding:
    """Return the padding of all sides from one or two numbers for both sides, or all four."""
    if len(padding) == 4:
        return padding[0], padding[1], padding[2], padding[3]
    rows, columns = pair(padding)
    return rows, rows, columns, columns


def linear(call: Call) -> Value:
    weights, bias = required(call, 1, "weight"), call.constant(2, "bias")
    return call.builder.linear(call.x, weights, bias, call.steps(1, "weight"))


def addmm(call: Call) -> Value:
    """bias + x @ weights, weights (inputs, c_out)."""
    x = call.get(1, "mat1")
    if not isinstance(x, Value) or call.kwargs:
        raise call.builder.refuse("only a linear layer's addmm is supported")
    outputs = call.shape[-1]
    bias = np.broadcast_to(required(call, 0, "self"), (outputs,))
    return call.builder.linear(x, required(call, 2, "mat2").T, bias)


def matmul(call: Call) -> Value:
    if isinstance(other := call.get(1, "other", call.kwargs.get("mat2")), Value):
        return whole.product(call.builder, call.x, other).reshape(call.shape)
    weights = required(call, 1, "other")
    if weights.ndim != 2:
        raise call.builder.refuse("a product with a matrix of constants is supported")
    return call.builder.linear(call.x, weights.T, None)


def attention(call: Call) -> Value:
    """aten.scaled_dot_product_attention: a mask is a constant."""
    mask = call.get(3, "attn_mask")
    if isinstance(mask, Value):
        raise call.builder.refuse("an attention's mask that is computed is not supported")
    q, k, v = (call.get(n, name) for n, name in enumerate(("query", "key", "value")))
    return whole.attention(
        call.builder, q, k, v, call.kwargs.get("scale"),
        None if mask is None else mask.detach().cpu().numpy(), call.get(5, "is_causal", False),
    )  # fmt: skip


def batch_norm(call: Call) -> Value:
    """weight, bias, mean, variance: (x - mean) / sqrt(variance + eps) * weight + bias."""
    mean, variance = required(call, 3, "running_mean"), required(call, 4, "running_var")
    weight, bias = call.constant(1, "weight"), call.constant(2, "bias")
    eps = call.args[6] if len(call.args) <= 7 else call.args[7]
    factor = (1.0 if weight is None else weight) / np.sqrt(variance + eps)
    offset = (0.0 if bias is None else bias) - mean * factor
    return whole.each_channel(call.builder, call.x, factor, offset)


OPERATORS: Table = {
    "aten.convolution.default": convolution,
    "aten.conv2d.default": conv,
    "aten.conv2d.padding": conv,
    "aten.conv1d.default": conv,
    "aten.conv1d.padding": conv,
    "aten.conv_transpose1d.default": conv_transpose,
    "aten.conv_transpose2d.input": conv_transpose,
    "aten.linear.default": linear,
    "aten.addmm.default": addmm,
    "aten.mm.default": matmul,
    "aten.matmul.default": matmul,
    "aten.bmm.default": matmul,
    "aten.scaled_dot_product_attention.default": attention,
    "aten.batch_norm.default": batch_norm,
    "aten._native_batch_norm_legit_no_training.default": batch_norm,
}
