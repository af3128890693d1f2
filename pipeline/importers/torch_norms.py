"""Normalizations of ATen: by layers, groups, instances and root mean squares."""

from __future__ import annotations

from pipeline.importers import whole
from pipeline.importers.layout import Value
from pipeline.importers.torch_call import Call, Table


def layers(call: Call) -> Value:
    """aten.layer_norm(x, shape, weight, bias, eps)"""
    count = len(call.get(1, "normalized_shape"))
    axes = range(-count, 0)
    made = whole.over_axes(call.builder, call.x, list(axes), epsilon=call.get(4, "eps", 1e-5))
    factor, offset = call.constant(2, "weight"), call.constant(3, "bias")
    return whole.affine(call.builder, made, factor, offset)


def rms(call: Call) -> Value:
    """aten.rms_norm(x, shape, weight, eps)"""
    axes = list(range(-len(call.get(1, "normalized_shape")), 0))
    epsilon = call.get(3, "eps") or 2.0**-23
    made = whole.over_axes(call.builder, call.x, axes, centred=False, epsilon=epsilon)
    return whole.affine(call.builder, made, call.constant(2, "weight"), None)


def groups(call: Call) -> Value:
    """aten.group_norm(x, groups, weight, bias, eps)"""
    made = whole.in_groups(
        call.builder, call.x, call.get(1, "num_groups"), call.get(4, "eps", 1e-5)
    )
    given = call.constant(2, "weight"), call.constant(3, "bias")
    return whole.each_channel(call.builder, made, *given)


def instances(call: Call) -> Value:
    """aten.instance_norm(x, weight, bias, mean, variance, use_input_stats, momentum, eps)"""
    if not call.get(5, "use_input_stats"):
        raise call.builder.refuse("an instance norm that counts while it trains is not supported")
    made = whole.in_groups(call.builder, call.x, call.x.shape[1], call.get(7, "eps", 1e-5))
    given = call.constant(1, "weight"), call.constant(2, "bias")
    return whole.each_channel(call.builder, made, *given)


OPERATORS: Table = {
    "aten.layer_norm.default": layers,
    "aten.rms_norm.default": rms,
    "aten.group_norm.default": groups,
    "aten.instance_norm.default": instances,
}
