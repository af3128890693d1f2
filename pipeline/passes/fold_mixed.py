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
    found = list[Part]()
    for name in joined.inputs:
        conv = made.get(name)
        if not isinstance(conv, Conv2d) or conv.output in graph.ends or any(conv.padding):
            return []
        channels, requant = graph.tensors[name].shape[2], conv.requant
        source, row, channel = _origin(graph, conv.inputs[0], made)
        if conv.groups != channels or not isinstance(requant, FixedPoint):
            return []
        found.append(Part(conv, requant.chosen(range(channels)), source, row, channel))
    if any(len(each.requant.multipliers) != each.conv.groups for each in found):
        return []
    ends = np.cumsum([0, *(each.conv.groups for each in found)]).tolist()
    alike = {
        (each.source, each.conv.stride, each.conv.dilation, each.conv.clip, *_rest(graph, each))
        for each in found
    }
    whole = graph.tensors[found[0].source].shape[2] == ends[-1]
    fits = whole and [each.channel for each in found] == ends[:-1] and len(alike) == 1
    if not fits or found[0].conv.dilation != (1, 1):
        return []
    more = sum(each.size for each in _filled(graph, found)) - sum(
        graph.constants[each.conv.parameters[0]].size for each in found
    )
    copied = sum(graph.tensors[each.conv.inputs[0]].size for each in found)
    made_rows = graph.tensors[joined.output].shape[0]
    rows, last = graph.tensors[found[0].source].shape[0], _height(graph, found)
    exact = (rows - last) // found[0].conv.stride[0] + 1 == made_rows
    return (
        found
        if exact and more * graph.tensors[joined.output].shape[1] * made_rows <= copied
        else []
    )


def _rest(graph: Graph, part: Part) -> tuple[object, ...]:
    """What else convolutions have to have in common."""
    weights = graph.tensors[part.conv.parameters[0]]
    return weights.shape[2], weights.dtype, weights.zero_point, len(weights.scale)


def _origin(graph: Graph, name: str, made: Mapping[str, Operator]) -> tuple[str, int, int]:
    """What a slice, or a slice of one, is taken of, and its first row and channel."""
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
    """The weights of each, with rows of 0 before and after, as the source's rows."""
    height, found = _height(graph, parts), list[IntArray]()
    for part in parts:
        weights = graph.constants[part.conv.parameters[0]]
        after = height - part.row - weights.shape[1]
        zero = graph.tensors[part.conv.parameters[0]].zero_point
        rows = ((0, 0), (part.row, after), (0, 0), (0, 0))
        found.append(np.pad(weights, rows, constant_values=zero))
    return found
