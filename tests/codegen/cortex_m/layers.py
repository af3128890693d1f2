"""Single layers at random: what the fast kernels have code for, and what they leave to others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.dense import Dense
from pipeline.graph.requant import FixedPoint, PowerOfTwo
from tests.graphs import Net


def _net(rng: np.random.Generator, shape: tuple[int, ...]) -> Net:
    return Net(shape, rng, "uint8" if rng.random() < 0.25 else "int8", "layer")


def requantized(
    rng: np.random.Generator, channels: int, atoms: int
) -> FixedPoint | PowerOfTwo | None:
    """Mostly TFLite's, or rounded once; sometimes large scales, nothing, or a shift."""
    typical = 40 / (np.sqrt(atoms) * 74 * 74)
    kind = rng.random()
    if kind < 0.5:
        return None
    if kind < 0.7:
        scales = (typical * rng.uniform(0.5, 2.0, channels)).tolist()
        return FixedPoint.rounding_once(scales, atoms << 16)
    if kind < 0.8:
        return FixedPoint.of(rng.uniform(0.4, 1.5, channels))
    if kind < 0.9:
        scales = typical * rng.uniform(0.5, 2.0, channels)
        scales[rng.integers(channels)] = 0
        return FixedPoint.of(scales)
    return PowerOfTwo(right_shift=int(rng.integers(6, 12)))


def clipped_at_zero(net: Net) -> None:
    """Sometimes the clip is that of a fused ReLU."""
    if net.rng.random() < 0.5:
        op = net.operators[-1]
        zero = net.tensors[op.output].zero_point
        object.__setattr__(op, "clip", (zero, 127))


def _extremes(net: Net) -> None:
    """Sometimes a weight that two channels cannot share a half with, sums beyond 24 bits, channels
    that are constant, as TFLite's converter leaves dead ones: a huge bias, a tiny scale."""
    op = net.operators[-1]
    assert isinstance(op, Conv2d | Dense)
    name = op.parameters
    kind = net.rng.random()
    if kind < 0.15:
        net.constants[name[0]].reshape(-1)[-1] = -128
    elif kind < 0.3:
        net.constants[name[1]][:] = net.rng.integers(
            -(1 << 26), 1 << 26, net.constants[name[1]].shape
        )
    elif kind < 0.45 and isinstance(op.requant, FixedPoint) and len(op.requant.shifts) > 1:
        net.constants[name[1]][::2] = 1_500_000_000
        shifts = (-27 if n % 2 == 0 else shift for n, shift in enumerate(op.requant.shifts))
        object.__setattr__(op, "requant", FixedPoint(op.requant.multipliers, tuple(shifts)))


def convolution(rng: np.random.Generator) -> Net:
    height, width, depth = (int(rng.integers(1, n)) for n in (10, 10, 14))
    net = _net(rng, (height, width, depth))
    kernel = (int(rng.integers(1, min(5, height) + 1)), int(rng.integers(1, min(5, width) + 1)))
    padding = tuple(int(rng.integers(0, k)) for k in (kernel[0], kernel[0], kernel[1], kernel[1]))
    channels = int(rng.integers(2, 12))
    net.conv(
        channels, kernel, stride=(int(rng.integers(1, 4)), int(rng.integers(1, 4))),
        padding=padding, requant=requantized(rng, channels, depth * kernel[0] * kernel[1]),
    )  # fmt: skip
    return net


def dilated(rng: np.random.Generator) -> Net:
    """Taps apart, some of them outside of the input for all pixels."""
    height, width, depth = (int(rng.integers(1, n)) for n in (10, 10, 14))
    net = _net(rng, (height, width, depth))
    kernel, apart = rng.integers(1, 4, 2).tolist(), rng.integers(1, 5, 2).tolist()
    down, across = (step * (k - 1) for step, k in zip(apart, kernel, strict=True))
    channels = int(rng.integers(2, 12))
    net.conv(
        channels, tuple(kernel), stride=tuple(rng.integers(1, 3, 2).tolist()),
        dilation=tuple(apart),
        padding=(int(rng.integers(0, down + 1)), down, int(rng.integers(0, across + 1)), across),
        requant=requantized(rng, channels, depth * kernel[0] * kernel[1]),
    )  # fmt: skip
    return net


def pointwise(rng: np.random.Generator) -> Net:
    net = _net(rng, (int(rng.integers(1, 8)), int(rng.integers(1, 8)), int(rng.integers(1, 70))))
    net.conv(int(rng.integers(2, 20)), (1, 1))
    return net


def depthwise(rng: np.random.Generator) -> Net:
    height, width = int(rng.integers(1, 12)), int(rng.integers(1, 14))
    channels = int(rng.integers(4, 14))
    net = _net(rng, (height, width, channels))
    kernel = (int(rng.integers(1, min(7, height) + 1)), int(rng.integers(1, min(7, width) + 1)))
    padding = tuple(int(rng.integers(0, k)) for k in (kernel[0], kernel[0], kernel[1], kernel[1]))
    net.depthwise(
        kernel, stride=(int(rng.integers(1, 4)), int(rng.integers(1, 3))), padding=padding,
        requant=requantized(rng, int(channels), kernel[0] * kernel[1]),
    )  # fmt: skip
    return net


def dense(rng: np.random.Generator) -> Net:
    shape = tuple(int(n) for n in rng.integers(1, 9, int(rng.integers(1, 4))))
    net = _net(rng, shape)
    outputs = int(rng.integers(2, 20 if rng.random() < 0.7 else 70))
    net.dense(outputs, requant=requantized(rng, outputs, int(np.prod(shape))))
    return net


def addition(rng: np.random.Generator) -> Graph:
    """Of two tensors that a layer each made; where the scale of one is the common one, too."""
    net = _net(rng, tuple(int(n) for n in rng.integers(1, 7, 3)))
    left, right = (net.conv(int(net.shape[2]), (1, 1), "image") for _ in range(2))
    net.plus(left, right)
    if rng.random() < 0.5:
        op = net.operators[-1]
        half = FixedPoint.of([0.5])
        object.__setattr__(op, "operand_requants", (half, FixedPoint.of([0.3])))
    clipped_at_zero(net)
    return net.graph()


def gate(rng: np.random.Generator) -> Graph:
    """Of a tensor and factors that are made of it, in either order."""
    net = _net(rng, tuple(int(n) for n in rng.integers(1, 11, 3)))
    given = net.conv(int(net.shape[2]), (1, 1))
    net.rescaled_mean()
    sides = [given, net.conv(int(net.shape[2]), (1, 1))]
    net.times(*rng.permutation(sides).tolist())
    clipped_at_zero(net)
    return net.graph()


def pooling(rng: np.random.Generator) -> Graph:
    """TFLite's average, another scale's, or the maximum; sometimes clipped at both ends."""
    height, width, channels = (int(n) for n in rng.integers((1, 1, 4), (12, 12, 20)))
    net = _net(rng, (height, width, channels))
    kernel = int(rng.integers(1, min(6, height) + 1)), int(rng.integers(1, min(6, width) + 1))
    padding = tuple(int(rng.integers(0, k)) for k in (kernel[0], kernel[0], kernel[1], kernel[1]))
    stride = (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
    kind = rng.choice(["maximum", "mean", "average"])
    if kind == "average":
        net.rescaled_mean()
    else:
        pool = net.maximum if kind == "maximum" else net.mean
        pool(kernel, stride=stride, padding=padding, clip=_clip(rng))
    return net.graph()


def _clip(rng: np.random.Generator) -> tuple[int, int] | None:
    return (int(rng.integers(0, 60)), int(rng.integers(60, 127))) if rng.random() < 0.3 else None


def ended(draw: Callable[[np.random.Generator], Net]) -> Callable[[np.random.Generator], Graph]:
    """The layer, with what its kernels end sums by."""

    def of(rng: np.random.Generator) -> Graph:
        net = draw(rng)
        clipped_at_zero(net)
        _extremes(net)
        return net.graph()

    return of


WEIGHTED = {
    "conv2d": convolution, "dilated": dilated, "pointwise": pointwise, "depthwise": depthwise,
    "dense": dense,
}  # fmt: skip
KINDS = {name: ended(draw) for name, draw in WEIGHTED.items()}
KINDS |= {"sum": addition, "gate": gate, "pool": pooling}
