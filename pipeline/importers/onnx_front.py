"""Preprocessing in real numbers that a quantized ONNX model does before its first QuantizeLinear:
normalizations. The firmware takes the data's values themselves, and makes the first integers of
them by a table, or by a scaling of each channel where they have factors of their own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.frames import FEWEST_VALUES
from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import FloatGraph, Node
from pipeline.importers.float_nodes import Floats
from pipeline.importers.float_passes import rebuilt, without
from pipeline.importers.scales import PIXEL, lookup_table


def checked(graph: FloatGraph, limits: tuple[float, float]) -> FloatGraph:
    """``graph``, which takes pixels that mean the real ``limits``.

    Raises:
        ThimbleError: hardly any different integers come of them.
    """
    readers = (node for name in graph.inputs for node in graph.readers(name))
    counts = [count for node in readers for count in _different(graph, node)]
    if counts and max(counts) < FEWEST_VALUES:
        raise ThimbleError(
            f"model.input_range={list(limits)} leaves {max(counts)} different values of 0…255 "
            "where the network, which scales its input, quantizes them: set model.input_range to "
            "what it takes for 0 and 255 of the data"
        )
    return graph


def _different(graph: FloatGraph, node: Node) -> Iterable[int]:
    """Into how many integers a scaling takes pixels, in each channel."""
    target = graph.given.get(node.output)
    if target is None:
        return []
    if isinstance(node, nodes.Function):
        return [len(set(lookup_table(node.body, PIXEL, target)))] if _scales(node) else []
    if not isinstance(node, nodes.Convolution) or node.weights[0].size > 1:
        return []
    real = np.arange(256)[:, None] * node.weights.reshape(-1) + node.bias
    stored: Floats = np.clip(np.rint(real / target.scale) + target.zero_point, *target.ends)
    return [len(np.unique(channel)) for channel in stored.T]


def _scales(node: nodes.Function) -> bool:
    return all(step.function in ("affine", "identity") for step in node.body.steps)


def without_idle(graph: FloatGraph) -> FloatGraph:
    """Drop first tables that leave every pixel's integer what it is."""
    for name in graph.inputs:
        graph = _without_idle(graph, name)
    return graph


def _without_idle(graph: FloatGraph, source: str) -> FloatGraph:
    if graph.given.get(source) != PIXEL:
        return graph
    first, *others = graph.readers(source)
    target = graph.given.get(first.output)
    if others or first.output in graph.ends or target is None:
        return graph
    if not isinstance(first, nodes.Function) or not _scales(first):
        return graph
    if lookup_table(first.body, PIXEL, target) != tuple(range(-128, 128)):
        return graph
    given = {**graph.given, source: target}
    fresh = replace(graph, given=given, limits=graph.limits or (0.0, 255.0))
    return rebuilt(fresh, without(graph, first))
