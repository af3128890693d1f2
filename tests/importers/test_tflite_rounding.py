"""Where a factor that is off by one in 31 bits, or a bound in float64, would give other bytes."""

from __future__ import annotations

from math import floor
from pathlib import Path

import numpy as np
import pytest
from tflite.ActivationFunctionType import ActivationFunctionType
from tflite.Padding import Padding

from tests.importers.tflite_reference import imported, reference
from tests.importers.tflite_writer import Writer

OUTS = 240


def on_the_edge(rng: np.random.Generator, dense: bool) -> bytes:
    """Sums that are biases alone, each next to a half of the output's scale."""
    in_scale, w_scale = (float(np.float32(s)) for s in rng.uniform(1e-4, 2e-4, 2))
    out_scale = float(np.float32(rng.uniform(0.05, 0.2)))
    halves = (np.arange(OUTS) - OUTS / 2 + 0.5) / (in_scale * w_scale / out_scale)
    bias = np.rint(halves + rng.integers(-3, 4, OUTS)).astype(np.int32)
    net = Writer()
    x = net.tensor((1, 1, 1, 2), in_scale, 0)
    y = net.tensor((1, OUTS) if dense else (1, 1, 1, OUTS), out_scale, 0)
    weights = np.zeros((OUTS, 2) if dense else (OUTS, 1, 1, 2), np.int8)
    inputs = [x, net.constant(weights, w_scale), net.constant(bias, in_scale * w_scale)]
    if dense:
        net.operator("FULLY_CONNECTED", inputs, [y], "FullyConnectedOptions")
    else:
        net.operator(
            "CONV_2D", inputs, [y], "Conv2DOptions", Padding=Padding.VALID, StrideH=1, StrideW=1
        )
    return net.content([x], [y])


@pytest.mark.parametrize("dense", [True, False])
def test_requantization_next_to_halves(dense: bool, tmp_path: Path) -> None:
    for seed in range(40):
        content = on_the_edge(np.random.default_rng(seed), dense)
        graph, frame = imported(content, tmp_path), np.zeros((1, 1, 1, 2), np.int64)
        assert (graph.outputs(frame).reshape(1, -1) == reference(content, frame)).all(), seed


def scales_on_the_edge() -> list[float]:
    """Where 6 / scale rounds to another integer in float32 than in float64."""
    scales = [float(np.float32(6 / (k + 0.5))) for k in range(20, 120)]
    return [s for s in scales if floor(6 / s + 0.5) != floor(np.float32(6) / np.float32(s) + 0.5)]


@pytest.mark.parametrize("kind", ["fused", "alone"])
def test_bounds_next_to_halves(kind: str, tmp_path: Path) -> None:
    scales = scales_on_the_edge()
    assert len(scales) > 10
    for scale in scales:
        net = Writer()
        x, y = (net.tensor((1, 1, 1, 1), scale, 0) for _ in range(2))
        if kind == "alone":
            net.operator("RELU6", [x], [y])
        else:
            net.operator(
                "MAX_POOL_2D", [x], [y], "Pool2DOptions", Padding=Padding.VALID, StrideH=1,
                StrideW=1, FilterHeight=1, FilterWidth=1,
                FusedActivationFunction=ActivationFunctionType.RELU6,
            )  # fmt: skip
        content, frame = net.content([x], [y]), np.full((1, 1, 1, 1), 127)
        ours = imported(content, tmp_path).outputs(frame)
        assert int(ours.item()) == int(reference(content, frame).item())
