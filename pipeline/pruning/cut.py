"""A float network without some of its channels: every tensor and every weight is really smaller."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import FloatGraph, Node
from pipeline.importers.float_passes import rebuilt
from pipeline.pruning.couplings import Channels, Couplings, Mask


def cut(found: Couplings, kept: Mask) -> FloatGraph:
    """The graph of ``found`` with the channels of the units in ``kept`` (units,), in their order.

    It gives what the whole one gives with the others' activations set to zero.
    """
    made = []
    for node in found.graph.nodes:
        inputs = [found.channels[name] for name in node.inputs]
        made.append(_cut(node, inputs, found.channels[node.output], kept))
    return rebuilt(found.graph, made)


def _cut(node: Node, inputs: Sequence[Channels], output: Channels, kept: Mask) -> Node:
    reads, makes = kept[inputs[0].numbers], kept[output.numbers]
    match node:
        case nodes.Convolution():
            weights = node.weights[makes]
            if node.groups == 1:
                weights = weights[..., reads] if inputs[0].axis == 2 else weights
            groups = max(1, node.groups * int(makes.sum()) // len(makes))
            return replace(node, weights=weights, bias=node.bias[makes], groups=groups)
        case nodes.Linear():
            weights = np.compress(reads, node.weights[makes], 1 + inputs[0].axis)
            return replace(node, weights=weights, bias=node.bias[makes])
        case nodes.Scale():
            return replace(node, factor=node.factor[makes], offset=node.offset[makes])
        case nodes.Binary(constant=constant) if constant is not None:
            if constant.shape[output.axis] > 1:  # of the activation's rank
                return replace(node, constant=np.compress(makes, constant, output.axis))
        case nodes.Reshaped():
            shape = list(node.shape)
            shape[output.axis] = int(makes.sum())
            return replace(node, shape=tuple(shape))
        case nodes.Rearranged():
            return _rearranged(node, inputs[0], output, kept)
    return node


def _rearranged(
    node: nodes.Rearranged, source: Channels, output: Channels, kept: Mask
) -> nodes.Rearranged:
    """A run of channels begins after those that are kept before it."""
    before, makes = kept[source.numbers], kept[output.numbers]
    starts, shape = list(node.starts), list(node.shape)
    if node.steps[source.axis] == node.repeats[source.axis] == 1:
        starts[source.axis] = int(before[: node.starts[source.axis]].sum())
        shape[output.axis] = int(makes.sum())
    return replace(node, starts=tuple(starts), shape=tuple(shape))
