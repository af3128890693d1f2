"""Biases that bring back the mean of each output channel."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import Affine, FloatGraph
from pipeline.importers.float_passes import simplified
from pipeline.importers.lower import stored_weights
from pipeline.importers.torch_export import exported
from pipeline.quantize.int8_bias import corrected, rounded, unbiased
from pipeline.quantize.int8_ranges import calibrated

ENTRY = Affine(0.05, -20)
COARSE = Affine(0.4, -100)


class Net(nn.Module):
    """A strided convolution with a clip, a depthwise one, a residual, a dense layer."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU6())
        self.body = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.dense = nn.Linear(8 * 4 * 4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        return self.dense(torch.relu(x + self.body(x)).flatten(1))


@pytest.fixture(scope="module")
def graph() -> FloatGraph:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return simplified(exported("net", Net().eval(), torch.zeros(1, 3, 8, 8)))


def frames(seed: int, count: int = 96) -> torch.Tensor:
    """(n, h, w, c), as stored integers stand for them."""
    generator = torch.Generator().manual_seed(seed)
    return rounded(torch.randn(count, 8, 8, 3, generator=generator) + 0.7, ENTRY)


def batches(values: torch.Tensor) -> Callable[[], Iterable[torch.Tensor]]:
    return lambda: values.split(20)


def weighted(graph: FloatGraph) -> list[nodes.Weighted]:
    return [node for node in graph.nodes if isinstance(node, nodes.Weighted)]


def errors(graph: FloatGraph, like: FloatGraph, values: torch.Tensor) -> list[float]:
    """For each layer of ``graph``, the greatest mean error of a channel, of all channels' spread.

    Each layer gets the integers of the exact input that it has in ``like``.
    """
    seen, found = dict(like.walk(values)), []
    for node, before in zip(weighted(graph), weighted(like), strict=True):
        affine = ENTRY if node.inputs[0] == like.input else COARSE
        integers, steps = stored_weights(node, affine.scale)
        coarse = integers * steps.reshape(-1, *(1,) * (integers.ndim - 1))
        exact = before.compute([seen[node.inputs[0]]])
        given = rounded(seen[node.inputs[0]], affine)
        off = replace(node, weights=coarse).compute([given]) - exact
        found.append(float(off.flatten(0, -2).mean(0).abs().max() / exact.std()))
    return found


def test_no_layer_is_off_in_the_mean(graph: FloatGraph) -> None:
    values = frames(1)
    affines = dict.fromkeys(graph.shapes, COARSE) | {graph.input: ENTRY}
    result = corrected(graph, affines, batches(values))
    before, after = errors(graph, graph, values), errors(result, graph, values)
    assert max(before[1:]) > 0.02 and max(after) < 1e-5
    others = frames(2)  # what calibration has not seen
    assert sum(errors(result, graph, others)) < 0.8 * sum(errors(graph, graph, others))


def test_the_mean_error_of_all_frames_is_that_of_the_mean_frame(graph: FloatGraph) -> None:
    """As the convolution is linear; a batch of any size gives the same."""
    values, layer = frames(3), weighted(graph)[0]
    affines = dict.fromkeys(graph.shapes, COARSE)
    result = weighted(corrected(graph, affines, batches(values)))[0]
    whole = weighted(corrected(graph, affines, lambda: [values]))[0]
    np.testing.assert_allclose(result.bias, whole.bias, rtol=0, atol=1e-9)
    each = [unbiased(layer, COARSE, x.double(), rounded(x, COARSE).double()).bias for x in values]
    np.testing.assert_allclose(result.bias, np.mean(each, 0), rtol=0, atol=1e-9)


def test_only_biases_change_and_none_that_the_source_has_quantized(graph: FloatGraph) -> None:
    given = tuple(
        replace(node, steps=stored_weights(node, 1.0)[1], weights=node.weights)
        if node is weighted(graph)[0] else node
        for node in graph.nodes
    )  # fmt: skip
    source = replace(graph, nodes=given)
    affines = dict.fromkeys(graph.shapes, COARSE)
    result = corrected(source, affines, batches(frames(4)))
    assert result.nodes[0] is source.nodes[0]
    for node, before in zip(weighted(result), weighted(source), strict=True):
        assert (node.weights == before.weights).all() and node.clip == before.clip
    assert not np.array_equal(weighted(result)[-1].bias, weighted(source)[-1].bias)


def test_fine_scales_leave_little_to_correct(graph: FloatGraph) -> None:
    values = frames(5)
    affines = calibrated(graph, batches(values), ENTRY, "minmax", 100.0)
    result = corrected(graph, affines, batches(values))
    exact, fixed = graph.outputs(values), result.outputs(values)
    assert 0 < float((exact - fixed).abs().max()) < 0.05 * float(exact.std())
