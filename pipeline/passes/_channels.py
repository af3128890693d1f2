"""Constant channels of an integer graph, and which channels belong together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.lookup import Lookup
from pipeline.graph.operators.placing import Pad
from pipeline.graph.operators.pool2d import AveragePool2d, Pool2d
from pipeline.graph.requant import Mean
from pipeline.graph.tensor import IntArray

Values = NDArray[np.float64]
"""The value of each channel of a tensor, NaN where it varies."""

Node = tuple[str, int]
"""A channel of a tensor."""


def taps(graph: Graph, op: Operator) -> IntArray:
    """Weights of a convolution or dense layer, less their zero point, as (c_out, positions,
    channels)."""
    weights = graph.constants[op.parameters[0]] - graph.tensors[op.parameters[0]].zero_point
    return weights.reshape(len(weights), -1, weights.shape[-1])


def constant_channels(graph: Graph) -> dict[str, Values]:
    """Return the channels whose value no input changes, found by following the operators once."""
    found: dict[str, Values] = {}
    for name, tensor in graph.tensors.items():
        found[name] = np.full(tensor.shape[-1], np.nan)
    for op in graph.operators:
        if not op.inputs:
            continue
        source = found[op.inputs[0]]
        if op.mixes_channels(graph.tensors) or op.depthwise(graph.tensors):
            found[op.output] = _products(graph, op, source)
        elif isinstance(op, Pool2d):
            keeps = not isinstance(op, AveragePool2d) or isinstance(op.requant, Mean)
            if keeps and op.clip is None:
                found[op.output] = source.copy()
        elif isinstance(op, Pad):
            zero = op.fill(graph.tensors)
            if any(map(any, op.padding[:-1])):  # around what is not that there is something else
                source = np.where(source == zero, source, np.nan)
            found[op.output] = np.pad(source, op.padding[-1], constant_values=zero)
        elif type(op) is Lookup:
            minimum = graph.tensors[op.inputs[0]].dtype.minimum
            known = ~np.isnan(source)
            table = np.array(op.table, dtype=np.float64)
            found[op.output][known] = table[source[known].astype(np.int64) - minimum]
    return found


def _products(graph: Graph, op: Operator, source: Values) -> Values:
    """A sum is constant where every channel is, or has no weight, and padding makes no difference:
    it counts as the real value 0."""
    weights, zero = taps(graph, op), graph.tensors[op.inputs[0]].zero_point
    if op.depthwise(graph.tensors):
        per_channel = len(weights) // len(source)
        source = np.repeat(source, per_channel)[:, None]  # (c_out, 1)
    padded = isinstance(op, Conv2d) and any(op.padding)
    known = np.where(padded & (source != zero), np.nan, source) - zero
    silent = ~weights.any(axis=1)
    terms = np.where(silent, 0.0, weights.sum(axis=1) * known)
    sums = terms.sum(axis=1)
    result = np.full(len(weights), np.nan)
    fixed = ~np.isnan(sums)
    shape = (1,) * (len(graph.tensors[op.output].shape) - 1)
    acc = np.where(fixed, sums, 0).astype(np.int64).reshape(1, *shape, -1)
    box = (*((0, 1) for _ in shape), (0, len(weights)))
    bias = {op.parameters[1]: graph.constant(op.parameters[1])}
    stored = op.finish(graph.tensors, box, acc, bias).reshape(-1)
    result[fixed] = stored[fixed]
    return result


def components(graph: Graph, stuck: Callable[[Node], bool]) -> list[set[Node]]:
    """Channels that can only go together, in sets none of which has a ``stuck`` member."""
    parent: dict[Node, Node] = {}

    def root(node: Node) -> Node:
        while parent.setdefault(node, node) != node:
            parent[node] = node = parent[parent[node]]
        return node

    ends = (*graph.starts, *graph.ends)
    held = {(name, k) for name in ends for k in range(graph.tensors[name].shape[-1])}
    for op in graph.operators:
        names = (*op.inputs, op.output)
        channels = graph.tensors[op.output].shape[-1]
        if op.mixes_channels(graph.tensors):
            continue
        if op.depthwise(graph.tensors):
            times = channels // graph.tensors[op.inputs[0]].shape[-1]
            for k in range(channels):
                parent[root((op.output, k))] = root((op.inputs[0], k // times))
        elif _follows(graph, op):
            for name in names:
                for k in range(channels):
                    parent[root((name, k))] = root((op.output, k))
        else:
            held |= {(name, k) for name in names for k in range(graph.tensors[name].shape[-1])}
    found: dict[Node, set[Node]] = {}
    activations = [*graph.starts, *(op.output for op in graph.operators)]
    for name in activations:
        for k in range(graph.tensors[name].shape[-1]):
            found.setdefault(root((name, k)), set()).add((name, k))
    return [group for group in found.values() if not any(n in held or stuck(n) for n in group)]


def _follows(graph: Graph, op: Operator) -> bool:
    """Output channel k depends on nothing but channel k of the inputs, and goes with it."""
    return op.channel_wise(graph.tensors) and not (op.parameters or op.fixed_shape)
