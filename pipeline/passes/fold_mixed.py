"""Depthwise convolutions of several heights over parts of an image's channels (MixConv: M. Tan and
Q. V. Le 2019), whose outputs are joined, become one over all of it: nothing is split, sliced and
joined any more, and weights of 0 fill the shorter kernels, which adds nothing to a sum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.placing import Concat, Rearrange
from pipeline.graph.requant import FixedPoint
from pipeline.graph.tensor import IntArray, Tensor
from pipeline.passes._edit import consumers, edited


class Part(NamedTuple):
    """A convolution of the ``source``, from a row and a channel of that on."""

    conv: Conv2d
    requant: FixedPoint
    source: str
    row: int
    channel: int


def apply(graph: Graph) -> Graph:
    readers, made = consumers(graph), {op.output: op for op in graph.operators}
    changed, tensors = list[Operator](), dict[str, Tensor]()
    constants = dict[str, IntArray]()
    for op in graph.operators:
        parts = _parts(graph, op, made)
        if parts and all(readers[part.conv.output] == [op] for part in parts):
            conv, requants = parts[0].conv, [part.requant for part in parts]
            weights, bias = conv.parameters
            constants[weights] = np.concatenate(_filled(graph, parts))
            constants[bias] = np.concatenate([graph.constants[p.conv.parameters[1]] for p in parts])
            for name in conv.parameters:
                tensors[name] = replace(graph.tensors[name], shape=constants[name].shape)
            requant = FixedPoint(
                tuple(each for of in requants for each in of.multipliers),
                tuple(each for of in requants for each in of.shifts),
            )
            groups = len(constants[weights])
            op = replace(
                conv, inputs=(parts[0].source,), output=op.output, groups=groups, requant=requant
            )
        changed.append(op)
    return edited(graph, changed, tensors, constants) if constants else graph


def _parts(graph: Graph, joined: Operator, made: Mapping[str, Operator]) -> list[Part]:
    """The convolutions whose outputs are ``joined``, if one can do what they do; else none."""
    if not isinstance(joined, Concat) or joined.axis != 2:
        return []
    found = [part for name in joined.inputs if (part := _part(graph, made.get(name), made))]
    if len(found) < len(joined.inputs):
        return []
    alike = {(each.source, *_fields(graph, each.conv)) for each in found}
    ends = np.cumsum([0, *(each.conv.groups for each in found)]).tolist()
    conv, source, target = (
        found[0].conv,
        graph.tensors[found[0].source],
        graph.tensors[joined.output],
    )
    whole = [*(each.channel for each in found), source.shape[2]] == ends
    rows = (source.shape[0] - _height(graph, found)) // conv.stride[0] + 1
    if not whole or len(alike) > 1 or conv.dilation != (1, 1) or rows != target.shape[0]:
        return []
    more = sum(each.size for each in _filled(graph, found)) - sum(
        graph.constants[each.conv.parameters[0]].size for each in found
    )
    copied = sum(graph.tensors[each.conv.inputs[0]].size for each in found)
    return found if more * target.shape[1] * rows <= copied else []


def _part(graph: Graph, conv: Operator | None, made: Mapping[str, Operator]) -> Part | None:
    """Find a depthwise convolution without padding, if ``conv`` is one."""
    if not isinstance(conv, Conv2d) or conv.output in graph.ends or any(conv.padding):
        return None
    requant, channels = conv.requant, graph.tensors[conv.output].shape[2]
    if not isinstance(requant, FixedPoint) or {conv.groups, len(requant.multipliers)} != {channels}:
        return None
    return Part(conv, requant, *_origin(graph, conv.inputs[0], made))


def _fields(graph: Graph, conv: Conv2d) -> tuple[object, ...]:
    """Say what convolutions have to have in common."""
    weights = graph.tensors[conv.parameters[0]]
    kind = weights.shape[2], weights.dtype, weights.zero_point, len(weights.scale)
    return conv.stride, conv.dilation, conv.clip, *kind


def _origin(graph: Graph, name: str, made: Mapping[str, Operator]) -> tuple[str, int, int]:
    """Return what a slice, or a slice of one, is taken of, and its first row and channel."""
    row, channel = 0, 0
    while isinstance(op := made.get(name), Rearrange):
        plain = op.axes == (0, 1, 2) and {*op.steps, *op.repeats} == {1}
        if not plain or op.shape[1] != graph.tensors[op.inputs[0]].shape[1]:
            break
        name, row, channel = op.inputs[0], row + op.starts[0], channel + op.starts[2]
    return name, row, channel


def _height(graph: Graph, parts: Sequence[Part]) -> int:
    """Rows from the source's first to the last that any of them reads for its first output."""
    return max(part.row + graph.tensors[part.conv.parameters[0]].shape[1] for part in parts)


def _filled(graph: Graph, parts: Sequence[Part]) -> list[IntArray]:
    """Return the weights of each, with rows of 0 before and after, as the source's rows."""
    height, found = _height(graph, parts), list[IntArray]()
    for part in parts:
        weights = graph.constants[part.conv.parameters[0]]
        after = height - part.row - weights.shape[1]
        zero = graph.tensors[part.conv.parameters[0]].zero_point
        rows = ((0, 0), (part.row, after), (0, 0), (0, 0))
        found.append(np.pad(weights, rows, constant_values=zero))
    return found
