"""Quantizations: of values by their range, of weights, and of what a function makes of integers."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite, isinf, log2
from typing import Any

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.exponential import DIFFERENCE_BITS, differences, exponentials, points
from pipeline.graph.operator import product_sums
from pipeline.graph.requant import FixedPoint
from pipeline.graph.tensor import DType, IntArray, Tensor
from pipeline.importers import float_nodes as nodes
from pipeline.importers import float_recurrent, float_whole
from pipeline.importers.deferred import torch
from pipeline.importers.float_graph import Affine, Interval, Node
from pipeline.importers.float_nodes import Floats
from pipeline.importers.float_pairs import Order
from pipeline.importers.functions import Composed

INT8, INT32 = DType.parse("int8"), DType.parse("int32")
PIXEL = Affine(1.0, -128)
"""Values 0…255, stored as the value less 128."""
PROBABILITY = Affine(1 / 256, -128)
"""Quantization of the integer softmax's output."""
LOGARITHM = Affine(1 / 16, 127)
"""Of its logarithm's."""
SHARE = Affine(2.0**-15, 0, 16)
"""Of the wide integer softmax's, and of what a GRU keeps."""
CELL = Affine(2.0**-11, 0, 16)
"""Of what an LSTM remembers."""
FIXED: Mapping[type[Node], Affine] = {
    nodes.SoftmaxOver: PROBABILITY,
    nodes.LogSoftmaxOver: LOGARITHM,
    Order: Affine(1.0, 0),
    float_whole.Places: Affine(1.0, 0, 32),
    float_recurrent.Gru: Affine(1 / 128, 0),
    float_recurrent.GruStep: SHARE,
    float_recurrent.LstmMemory: CELL,
}
"""Quantizations of what operators make, whatever their inputs."""
WEIGHT_LIMIT = 127
ABOVE = 1 + 2.0**-20
"""Least ratio of an output's scale to the step of the sums that it is made from."""
INTEGERS = np.arange(-128, 128)


def stored_limits(clip: Interval | None, affine: Affine) -> tuple[int, int] | None:
    if clip is None:
        return None
    ends = (
        affine.ends[side] if isinf(end)
        else int(np.clip(np.rint(end / affine.scale) + affine.zero_point, *affine.ends))
        for side, end in enumerate(clip)
    )  # fmt: skip
    low, high = ends
    return low, high


def lookup_table(
    body: Composed, source: Affine, target: Affine, at: IntArray = INTEGERS
) -> tuple[int, ...]:
    """Return round(body(s (q - z)) / s') + z' for each q in ``at``, clipped; halves go to even, as
    in ONNX. NaN, such as a logarithm's, becomes the real value 0."""
    real = source.scale * (torch.from_numpy(at).double() - source.zero_point)
    result = torch.nan_to_num(body(real), nan=0.0, posinf=1e30, neginf=-1e30)
    stored = torch.round(result / target.scale) + target.zero_point
    return tuple(int(q) for q in stored.clamp(*target.ends))


def lines(body: Composed, source: Affine, target: Affine) -> tuple[int, ...]:
    """Return ``body`` at every 128th integer of 16 bits, each entry nearer to the curve's middles
    beside it by half of what the lines are off there."""
    exact = np.array(lookup_table(body, source, target, np.arange(-(1 << 15), (1 << 15) + 1, 64)))
    off = (exact[:-2:2] + exact[2::2]) / 2 - exact[1::2]
    both = off[[0, *range(512)]] + off[[*range(512), 511]]
    return tuple(np.rint(exact[::2] - both / 4).astype(int).clip(*target.ends).tolist())


def wide_softmax(scale: float) -> dict[str, Any]:
    """Return the fields of ``WideSoftmax`` of differences in steps of ``scale``."""
    reciprocals = points(lambda x: 1 / (1 + x), 0, 1)
    given = {"exponentials": points(np.exp, -10, 0), "reciprocals": reciprocals}
    return {**given, "requant": FixedPoint.of([scale * 6553.5])}


def log_softmax(scale: float) -> dict[str, Any]:
    """Return the fields of ``LogSoftmax`` of differences in steps of ``scale``."""
    if not scale * (1 << (31 - DIFFERENCE_BITS)) > 1:
        raise ThimbleError("its input's scale is too small")
    scaled, known = differences(scale)
    logs = tuple(np.where(known, scaled, -20 << 26).clip(-20 << 26).tolist())
    return {"exponentials": exponentials(scale), "differences": logs}


def lstm_memory(cell: float) -> dict[str, Any]:
    """Return the fields of ``LstmMemory`` of what is remembered in steps of ``cell``."""
    return {"keep": FixedPoint.of([2.0**-15]), "add": FixedPoint.of([2.0**-30 / cell])}


def lstm_shown(cell: float, output: float) -> dict[str, Any]:
    """Return the fields of ``LstmHidden``; ``cell`` is a power of two, tanh takes 1/12288ths."""
    shift = 12 + round(log2(cell))
    curve = 3 << max(shift, 0), max(-shift, 0)
    return {"show": FixedPoint.of([2.0**-30 / output]), "curve": curve}


def weight_steps(weights: Floats, bias: Floats, scale_in: float) -> Floats:
    """Symmetric scales (c_out,): the largest weight is 127, and the bias fits int32 with room."""
    largest = np.abs(weights.reshape(len(weights), -1)).max(1)
    steps = np.maximum(largest / WEIGHT_LIMIT, np.abs(bias) / (scale_in * 2.0**29))
    return np.where(steps > 0, steps, 1.0)


def stored_weights(node: nodes.Weighted, scale_in: float) -> tuple[IntArray, Floats]:
    """Return the integers, and the real value of a unit of each output channel's."""
    steps = node.steps
    if steps is None:
        steps = weight_steps(node.weights, node.bias, scale_in)
    column = steps.reshape(-1, *(1,) * (node.weights.ndim - 1))
    return np.rint(node.weights / column).astype(np.int64), steps


def fixed_point(node: Node, scales: Floats | list[float], largest: float) -> FixedPoint:
    """The factors; ``largest`` is the greatest sum that they are applied to, whatever its sign.

    Raises:
        ThimbleError: where a sum, shifted left, may leave int32.
    """
    try:
        requant = FixedPoint.rounding_once([float(each) for each in scales], largest)
    except ThimbleError as error:
        raise node.refuse(str(error)) from None
    if largest * 2.0 ** max(0, *requant.shifts) >= 2.0**31:
        raise node.refuse("its sums may leave int32: the output's scale is far below the inputs'")
    return requant


def largest_sum(weights: IntArray, bias: Floats, source: Tensor) -> float:
    """Bound sums of any input in magnitude; by the number of weights alone where that suffices."""
    steps = float(source.dtype.maximum - source.dtype.minimum)
    products = int(weights[0].size) * max(128.0, float(np.abs(weights).max())) * steps
    if products >= 2.0**30:
        products = float(np.abs(product_sums(weights, source)).max())
    return products + float(np.abs(bias).max(initial=0))


def constant_affine(values: Floats) -> Affine:
    """Return the least scale that holds all values and 0."""
    return range_affine(float(values.min()), float(values.max()))


def range_affine(low: float, high: float) -> Affine:
    """int8 over [low, high], widened to hold 0, which is exact."""
    low, high = min(float(low), 0.0), max(float(high), 0.0)
    scale = (high - low) / 255
    if not isfinite(scale):
        raise ThimbleError("an activation is not finite: check the weights")
    if scale < 1e-30:
        return Affine(1 / 128, 0)
    return Affine(scale, int(np.clip(round(-128 - low / scale), -128, 127)))
