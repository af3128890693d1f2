"""Single layers at random: what the fast kernels have code for, and what they leave to others; and
those that row kernels make, and networks of them."""

from collections.abc import Callable
from functools import partial

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.operators.conv2d import Conv2d, Dense
from pipeline.graph.operators.pairwise import SquaredDifference
from pipeline.graph.requant import FixedPoint, PowerOfTwo
from pipeline.kernels.cortex_m import best_pixels
from tests.graphs import Chained, Net


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
    """Add two tensors that layers made, or square their difference; one may keep its scale."""
    net = _net(rng, tuple(int(n) for n in rng.integers(1, 7, 3)))
    left, right = (net.conv(int(net.shape[2]), (1, 1), "image") for _ in range(2))
    halves, kind = (FixedPoint.of([0.5]), FixedPoint.of([0.3])), rng.random()
    square = partial(net.pairs, SquaredDifference, requant=FixedPoint.of([2.0**-22]))
    (square if kind < 0.3 else net.plus)(left, right)
    if kind < 0.6:
        object.__setattr__(net.operators[-1], "operand_requants", halves)
    clipped_at_zero(net)
    return net.graph()


def gate(rng: np.random.Generator) -> Graph:
    """Multiply a tensor by factors that are made of it, in either order."""
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


Case = tuple[Graph, dict[str, int], str]
"""A layer between two others, the pixels of its tensors' blocks, and the kernel for it."""


Drawn = tuple[tuple[int, int, int], str, Callable[[Net], str]]
"""The shape of an input, a kernel, and what adds its layer."""


def _case(draw: Callable[[np.random.Generator], Drawn], rng: np.random.Generator) -> Case:
    """The layer reads what an average of one pixel makes, and such a one reads it: others decide
    nothing about how rows lie. Sometimes its output has channels last, or rows of depthwise layers
    are one block."""
    shape, kernel, make = draw(rng)
    net = Net(shape, rng, "uint8" if rng.random() < 0.2 else "int8", "layer")
    given = net.mean((1, 1), stride=(1, 1))
    made = make(net)
    graph = Chained(net).mean((1, 1), stride=(1, 1)).graph()
    names = [made] if draw is image else [given, made]
    names = names[: len(names) - int(rng.random() < 0.2)]
    columns = {name: graph.tensors[name].shape[1] for name in names}
    one_block = draw is row_depthwise and rng.random() < 0.2
    pixels = columns if one_block else {name: best_pixels(n) for name, n in columns.items()}
    return graph, pixels, f"cortex_m.{kernel}"


def _sides(rng: np.random.Generator, most: int) -> tuple[int, int, int]:
    rows, columns, channels = (int(n) for n in rng.integers((3, 1, 1), (6, most, 9)))
    return rows, columns, channels


def row_depthwise(rng: np.random.Generator) -> Drawn:
    """Draw windows of any size; half of them are the usual one."""
    rows, columns, channels = _sides(rng, 20)
    high, wide = (int(n) for n in rng.integers((1, 1), (7, 8))) if rng.random() < 0.5 else (3, 3)
    left, right = (int(n) for n in rng.integers(0, wide, 2))
    down, across = (int(n) for n in rng.integers(1, 3, 2))
    padding = (high // 2, int(rng.integers(0, high)), left, right)
    shape = (rows + high // 2, max(columns, wide - left - right), channels)
    options = {"stride": (down, across), "padding": padding}
    return shape, "row_depthwise", lambda net: net.depthwise((high, wide), **options)


def row_pointwise(rng: np.random.Generator) -> Drawn:
    stride = (int(rng.integers(1, 3)), int(rng.integers(1, 3)))
    channels = int(rng.integers(2, 14))
    return _sides(rng, 20), "row_conv2d", lambda net: net.conv(channels, (1, 1), stride=stride)


def spatial(rng: np.random.Generator) -> Drawn:
    rows, _, channels = _sides(rng, 9)
    stride, left = ((1, 1), (2, 0), (2, 1))[int(rng.integers(3))]
    columns = 4 * stride * int(rng.integers(1, 5))
    padding = (1, 1, left, 1 if stride == 1 else 1 - left)
    count, high = int(rng.integers(2, 14)), int(rng.integers(1, 4))
    options = {"stride": (stride, stride), "padding": padding}
    shape = (rows, columns, channels)
    return shape, "row_conv2d", lambda net: net.conv(count, (high, 3), **options)


def wide(rng: np.random.Generator) -> Drawn:
    """Draw widths and dilations that nothing divides; some taps are never inside."""
    rows, columns, channels = _sides(rng, 20)
    kernel = (int(rng.integers(1, 4)), int(rng.integers(2, 5)))
    apart = (1, int(rng.integers(1, 5)))
    stride, count = (1, int(rng.integers(1, 3))), int(rng.integers(2, 14))
    across = (kernel[1] - 1) * apart[1]
    padding = (1, 1, int(rng.integers(0, across + 1)), across)
    options = {"stride": stride, "padding": padding, "dilation": apart}
    shape = (rows + 2, columns, channels)
    return shape, "row_conv2d", lambda net: net.conv(count, kernel, **options)


def image(rng: np.random.Generator) -> Drawn:
    rows, columns, channels = _sides(rng, 20)
    kernel = (int(rng.integers(1, 4)), int(rng.integers(2, 5)))
    stride, count = (int(rng.integers(1, 3)), int(rng.integers(1, 4))), int(rng.integers(2, 14))
    padding = (0, 1, int(rng.integers(0, 2)), 2)
    options, shape = {"stride": stride, "padding": padding}, (rows + 2, columns + 4, channels)
    return shape, "row_conv2d", lambda net: net.conv(count, kernel, **options)


def added(rng: np.random.Generator) -> Drawn:
    return _sides(rng, 20), "row_pool", Net.rescaled_mean


def pool(rng: np.random.Generator) -> Drawn:
    rows, columns, channels = _sides(rng, 20)
    kernel = int(rng.integers(1, 4)), int(rng.integers(2, 5))
    stride = int(rng.integers(1, 3)), int(rng.integers(1, 4))
    padding = (int(rng.integers(0, kernel[0])), 0, int(rng.integers(0, kernel[1])), 1)
    kind = (Net.mean, Net.maximum)[int(rng.integers(2))]
    options, shape = {"stride": stride, "padding": padding}, (rows, columns + 4, channels)
    return shape, "row_pool", lambda net: kind(net, kernel, **options)


def row_gate(rng: np.random.Generator) -> Drawn:
    """A sum, or a product of factors that are made of all rows."""

    def make(net: Net) -> str:
        given = net.last
        if rng.random() < 0.3:
            return net.plus(given, net.lookup())
        net.rescaled_mean()
        return net.times(*rng.permutation([given, net.lookup()]).tolist())

    rows, columns, channels = _sides(rng, 20)
    return (rows, columns + 2, channels + 3), "elements", make


def concat(rng: np.random.Generator) -> Case:
    """Join two or three tensors; sometimes the first one, or the output, has channels last."""
    net = Net(_sides(rng, 20), rng, name="layer")
    first = net.conv(int(rng.integers(1, 14)), (1, 1))
    parts = [first, net.maximum((1, 1), stride=(1, 1))]
    if rng.random() < 0.5:
        parts.append(net.like(net.conv(int(rng.integers(1, 14)), (1, 1), first), first))
    made = net.concat(tuple(parts))
    graph = Chained(net).mean((1, 1), stride=(1, 1)).graph()
    names = [*parts, made][int(rng.random() < 0.1) : len(parts) + int(rng.random() < 0.9)]
    pixels = {name: best_pixels(graph.tensors[name].shape[1]) for name in names}
    return graph, pixels, "int8.concat"


def row_dense(rng: np.random.Generator) -> Case:
    """Draw a dense layer on a map, in blocks or not, whose rows are added up."""
    shape, outputs = _sides(rng, 9), int(rng.integers(1, 12))
    net = Net(shape, rng, "uint8" if rng.random() < 0.2 else "int8", "layer")
    given = net.mean((1, 1), stride=(1, 1))
    net.dense(outputs)
    net.lookup()
    pixels = {given: best_pixels(shape[1])} if rng.random() < 0.8 else {}
    return net.graph(), pixels, "cortex_m.row_dense"


DRAWN = (row_depthwise, row_pointwise, spatial, wide, image, added, pool)
ROWS: dict[str, Callable[[np.random.Generator], Case]] = {
    **{each.__name__.removeprefix("row_"): partial(_case, each) for each in DRAWN},
    "concat": concat,
    "dense": row_dense,
    "gate": partial(_case, row_gate),
}


def network(seed: int) -> Graph:
    """All kinds, one after the other, and a sum."""
    rng = np.random.default_rng(seed)
    columns, stride = (6, 27, 14, 10)[seed % 4], (1, 2)[seed % 2]
    net = Net((9, columns, 3), rng, name="rows")
    net.conv(int(rng.integers(3, 9)), (3, 3), stride=(1, stride))
    net.depthwise((3, 3))
    start = net.conv(8, (1, 1))
    Chained(net).conv(20, (1, 1)).depthwise((3, 3)).plus(net.conv(8, (1, 1)), start)
    Chained(net).depthwise((3, 3), stride=(2, 2), padding=(1, 1, 1, 1)).conv(7, (1, 1))
    return Chained(net).depthwise(((5, 5), (7, 7))[seed % 2]).rescaled_mean().dense(5).graph()


def image_network(seed: int) -> Graph:
    """A residual one, as wide as blocks are."""
    rng = np.random.default_rng(seed)
    net = Net((8, 16, 3), rng, name="residual")
    start = net.conv(6, (3, 3))
    net.plus(net.conv(6, (3, 3), net.conv(6, (3, 3))), start)
    short = net.conv(9, (1, 1), stride=(2, 2))
    padding = (0, 1, 0, 1) if seed % 2 else (1, 0, 1, 0)
    body = net.conv(9, (3, 3), start, stride=(2, 2), padding=padding)
    return Chained(net).plus(body, short).rescaled_mean().dense(5).graph()
