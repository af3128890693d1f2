"""Normalizations of ONNX: by layers, instances, groups, root mean squares and norms."""

from __future__ import annotations

from math import prod

from pipeline.importers import whole
from pipeline.importers.float_nodes import Floats
from pipeline.importers.layout import Value
from pipeline.importers.onnx_call import Call, Table


def layers(call: Call) -> Value:
    """LayerNormalization, RMSNormalization: over all axes from ``axis`` on."""
    x, rank = call.x, len(call.x.shape)
    axes = range(call.axis(call.integer("axis", -1), rank), rank)
    given = {"centred": call.node.operator == "LayerNormalization"}
    epsilon = call.number("epsilon", 1e-5)
    made = whole.over_axes(call.builder, x, axes, epsilon=epsilon, **given)
    return whole.affine(call.builder, made, call.constant(1).floats, _floats(call, 2))


def instances(call: Call) -> Value:
    channels = prod(call.x.shape[1:2])
    made = whole.in_groups(call.builder, call.x, channels, call.number("epsilon", 1e-5))
    return _each_channel(call, made)


def groups(call: Call) -> Value:
    """GroupNormalization: before opset 21 scales are of groups."""
    count = call.integer("num_groups", 1)
    made = whole.in_groups(call.builder, call.x, count, call.number("epsilon", 1e-5))
    return _each_channel(call, made, 1 if call.opset >= 21 else call.x.shape[1] // max(1, count))


def norm(call: Call) -> Value:
    """LpNormalization of order 2."""
    if call.integer("p", 2) != 2:
        raise call.refuse("norms of order 2 are supported")
    return whole.over_axes(
        call.builder, call.x, [call.integer("axis", -1)], centred=False, total=True
    )


def _floats(call: Call, index: int) -> Floats | None:
    found = call.optional(index)
    return None if found is None else found.floats


def _each_channel(call: Call, x: Value, repeats: int = 1) -> Value:
    """Scales and biases of channels, or of groups of so many."""
    factor, offset = (call.constant(n).floats.repeat(repeats) for n in (1, 2))
    return whole.each_channel(call.builder, x, factor, offset)


OPERATORS: Table = {
    "LayerNormalization": layers,
    "RMSNormalization": layers,
    "InstanceNormalization": instances,
    "GroupNormalization": groups,
    "LpNormalization": norm,
}
