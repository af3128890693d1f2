"""int8 after training: ranges, biases, labels, and what happens without data; and of
quantization.csv the figures, which layers are named, and what is advised."""

import csv
from collections.abc import Callable, Iterable
from dataclasses import replace
from io import StringIO
from math import inf, log10

import numpy as np
import pytest
import torch
from torch import nn

from pipeline.artifacts import Arrays
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import Affine, FloatGraph
from pipeline.importers.float_passes import simplified
from pipeline.importers.quantizations import quantizations
from pipeline.importers.scales import PIXEL, range_affine, stored_weights
from pipeline.importers.torch_export import exported
from pipeline.importers.torch_model import Ranged
from pipeline.models.network import state_arrays
from pipeline.quantize import int8_ranges
from pipeline.quantize.errors import Row, errors, to_csv, worst
from pipeline.quantize.int4 import Int4
from pipeline.quantize.int8 import Int8, Observer, absorbed
from pipeline.quantize.int8_bias import corrected, rounded
from tests.importers.torch_modules import Of
from tests.quantize.nets import Own, pixels, stored
from tests.tiers import quick


def labels(graph: Graph, data: Arrays) -> np.ndarray:
    return graph.evaluate(stored(data["test_images"])).argmax(1)


@pytest.mark.parametrize("observer", quick(0, ["mse", "minmax", "percentile"]))
def test_labels_of_a_network_stay(residual: nn.Module, data: Arrays, observer: Observer) -> None:
    graph = Int8(observer=observer).graph("net", Own(), state_arrays(residual), data)
    with torch.no_grad():
        expected = residual(pixels(data)).argmax(1).numpy()
    assert (expected == data["test_labels"]).mean() > 0.9  # it learnt something
    assert (labels(graph, data) == expected).mean() >= 0.995
    assert {str(tensor.dtype) for tensor in graph.tensors.values()} == {"int8", "int32"}


@pytest.mark.ci
def test_without_data_ranges_come_from_seeded_pictures(residual: nn.Module, data: Arrays) -> None:
    weights = state_arrays(residual)
    graphs = [Int8(seed=seed, images=64).graph("net", Own(), weights) for seed in (0, 0, 1)]
    assert graphs[0].hash == graphs[1].hash != graphs[2].hash
    empty = {"train_images": np.zeros((0, 28, 28, 1), np.uint8)}
    assert Int8(images=64).graph("net", Own(), weights, empty).hash == graphs[0].hash
    with torch.no_grad():
        expected = residual(pixels(data)).argmax(1).numpy()
    assert (labels(graphs[0], data) == expected).mean() >= 0.97


def test_normalization_is_no_operator() -> None:
    """Padding asks for the real 0: it goes into the zero point; a factor alone into the weights."""
    x, conv = torch.zeros(1, 1, 4, 4), nn.Conv2d(1, 2, 3, padding=1)
    shifted = Of(lambda m, x: m.conv((x - 128) / 64), conv=conv)
    graph = simplified(exported("net", shifted, x))
    smaller, affines = absorbed(graph)
    assert len(graph.nodes) == 2 and len(smaller.nodes) == 1
    assert affines == {graph.input: Affine(1.0, 0)}  # the factor went on into the weights
    scaled = simplified(exported("net", Ranged(nn.Conv2d(1, 2, 3, padding=1), 0, 1), x))
    assert len(scaled.nodes) == 1 and absorbed(scaled)[1] == {scaled.input: PIXEL}


def histogram(values: torch.Tensor) -> int8_ranges.Histogram:
    seen = int8_ranges.Histogram()
    seen.widen(values)
    seen.count(values)
    return seen


def test_observers() -> None:
    values = torch.randn(100_000, generator=torch.Generator().manual_seed(0))
    values[0] = 60.0  # an outlier
    seen = histogram(values)
    rules = (int8_ranges.minmax, int8_ranges.by_percentile, int8_ranges.by_error)
    whole, most, best = (rule(seen, 99.9) for rule in rules)
    assert whole.scale == pytest.approx((60 - float(values.min())) / 255)
    assert 6 / 255 < most.scale < 8 / 255
    assert most.scale < best.scale < whole.scale
    assert int8_ranges.by_percentile(seen, 100) == range_affine(seen.centres[0], seen.centres[-1])

    def error(affine: Affine) -> float:
        steps = torch.round(values / affine.scale) + affine.zero_point
        real = affine.scale * (steps.clamp(-128, 127) - affine.zero_point)
        return float(((real - values) ** 2).mean())

    assert error(best) <= min(error(whole), error(most)) * 1.01


def test_large_activations_are_sampled_in_every_channel() -> None:
    values = torch.zeros(4, 128, 128, 32)
    values += torch.arange(1, 33)  # channel c holds c + 1
    seen = histogram(values)
    step = int8_ranges.spacing(values.numel(), 32)
    assert step > 1 and 0.9 < seen.counts.sum() / (values.numel() / step) < 1.1
    assert (seen.counts > 0).sum() == 32
    assert int8_ranges.spacing(1000, 32) == 1


def test_concatenated_tensors_share_a_quantization_where_nothing_else_reads_them() -> None:
    def both(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        a, b = m.a(x), m.b(x)
        return torch.cat([torch.cat([a, b], 1), a * b], 1)

    net = Of(both, a=nn.Conv2d(1, 2, 1), b=nn.Conv2d(1, 2, 1))
    graph = simplified(exported("net", net, torch.zeros(1, 1, 4, 4)))
    found = int8_ranges.groups(graph, {graph.input: PIXEL})
    first, second, inner, product, outer = (node.output for node in graph.nodes)
    assert found[product] == found[inner] == found[outer]
    assert len({found[first], found[second], found[outer]}) == 3  # the product reads both


def test_what_a_mean_is_taken_of_has_a_range_of_its_own() -> None:
    mean = nodes.AveragePool(
        name="m", inputs=("x",), output="y", kernel=(2, 2), stride=(2, 2), padding=(0, 0, 0, 0)
    )
    shapes, given = {"x": (4, 4, 1), "y": (2, 2, 1)}, {"y": Affine(0.1, 3)}
    graph = FloatGraph("net", shapes, (mean,), ("x",), ("y",), given)
    assert quantizations(graph, guessed=False) == given
    assert quantizations(graph) == {"x": given["y"], **given}


def test_mistakes_are_one_line(residual: nn.Module, data: Arrays) -> None:
    weights = state_arrays(residual)
    with pytest.raises(ThimbleError, match="quantize=int8"):
        Int4().from_float(exported("net", residual, Own().example()))
    with pytest.raises(ThimbleError, match=r"quantize\.observer=best"):
        Int8(observer="best")  # type: ignore[arg-type]
    with pytest.raises(ThimbleError, match=r"quantize\.images=0"):
        Int8(images=0)
    other = {"train_images": np.zeros((5, 14, 14, 1), np.uint8)}
    with pytest.raises(ThimbleError, match="14x14x1"):
        Int8().graph("net", Own(), weights, other)
    weights["stem.0.weight"] = weights["stem.0.weight"] * np.nan
    with pytest.raises(ThimbleError, match="not finite"):
        Int8().graph("net", Own(), weights, data)


ENTRY = Affine(0.05, -20)
COARSE = Affine(0.4, -100)


@pytest.fixture(scope="module")
def graph() -> FloatGraph:
    """A strided convolution with a clip, a depthwise one, a residual, a dense layer."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU6())
        depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        body = Of(lambda m, x: torch.relu(x + m.a(x)), a=depthwise)
        net = nn.Sequential(stem, body, nn.Flatten(), nn.Linear(8 * 4 * 4, 5))
        return simplified(exported("net", net.eval(), torch.zeros(1, 3, 8, 8)))


def frames(seed: int, count: int = 96) -> torch.Tensor:
    """(n, h, w, c), as stored integers stand for them."""
    generator = torch.Generator().manual_seed(seed)
    return rounded(torch.randn(count, 8, 8, 3, generator=generator) + 0.7, ENTRY)


def batches(values: torch.Tensor) -> Callable[[], Iterable[torch.Tensor]]:
    return lambda: values.split(20)


def weighted(graph: FloatGraph) -> list[nodes.Weighted]:
    return [node for node in graph.nodes if isinstance(node, nodes.Weighted)]


def means_off(graph: FloatGraph, like: FloatGraph, values: torch.Tensor) -> list[float]:
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
    before, after = means_off(graph, graph, values), means_off(result, graph, values)
    assert max(before[1:]) > 0.02 and max(after) < 1e-5
    others = frames(2)  # what calibration has not seen
    assert sum(means_off(result, graph, others)) < 0.8 * sum(means_off(graph, graph, others))


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


def network() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 5)).eval()


def db(signal: np.ndarray, noise: np.ndarray) -> float:
    return 10 * log10((signal**2).sum() / (noise**2).sum())


def test_by_their_definition() -> None:
    floats = exported("net", network(), torch.zeros(1, 2, 6, 6))
    rng = np.random.default_rng(0)
    data = {"train_images": rng.integers(0, 256, (20, 6, 6, 2)).astype(np.uint8)}
    graph = Int8().from_float(floats, data)
    rows = Int8().errors(floats, {}, graph, data)
    assert [row.operator for row in rows] == ["Convolution", "Linear"]
    chosen = np.unique(np.linspace(0, 19, 16).astype(np.int64))
    stored = data["train_images"][chosen].astype(np.int64) - 128
    found = {
        name: graph.tensors[name].scale[0] * (q - graph.tensors[name].zero_point)
        for name, q in graph.run(stored).items()
    }
    plain = simplified(floats)
    exact = dict(plain.walk(torch.from_numpy(found[graph.input]).float()))
    last, made = plain.nodes[-1], found[graph.output]
    with torch.no_grad():
        own = last.evaluate([torch.from_numpy(found[last.inputs[0]]).float()]).numpy()
    wanted = exact[graph.output].numpy()
    assert rows[-1].sqnr_db == pytest.approx(db(wanted, wanted - made), abs=0.01)
    assert rows[-1].own_sqnr_db == pytest.approx(db(own, own - made), abs=0.01)
    assert rows[-1].crest == pytest.approx(abs(own).max() / (own**2).mean() ** 0.5, rel=1e-3)
    assert 20 < rows[-1].sqnr_db < rows[-1].own_sqnr_db


def test_what_a_narrow_range_cuts_off() -> None:
    floats = exported("net", network(), torch.zeros(1, 2, 6, 6))
    data = {"train_images": np.full((1, 6, 6, 2), 255, np.uint8)}
    dim = {"train_images": data["train_images"] // 4}
    row = Int8().errors(floats, {}, Int8().from_float(floats, dim), data)[0]
    assert row.clipped_pct > 99 and row.own_sqnr_db < 10


def row(layer: str, own: float, clipped: float = 0.0, crest: float = 3.0) -> Row:
    return Row("t", layer, "Linear", 20.0, own, clipped, crest)


def test_the_three_worst_are_named_and_what_to_try() -> None:
    rows = [
        row("a", inf), row("b", 12.5, clipped=70.0), row("c", 15.0, crest=40.0), row("d", 44.0),
        row("e", 19.0),
    ]  # fmt: skip
    content = to_csv(rows)
    assert next(csv.DictReader(StringIO(content)))["own_sqnr_db"] == "inf"
    said = worst(content)
    assert said[0].startswith("b (12.50 dB): 70.00 %") and "observer=minmax" in said[0]
    assert "observer=percentile" in said[1] and "int8_qat" in said[2] and len(said) == 3
    assert worst(to_csv([rows[0], rows[3]])) == ["d (44.00 dB): it loses little"]
    assert worst("") == worst(to_csv([])) == []
    assert errors(exported("n", nn.ReLU(), torch.zeros(1, 4)), Int8().from_float(
        exported("n", nn.ReLU(), torch.zeros(1, 4))), [])[0].sqnr_db == 0.0  # fmt: skip
