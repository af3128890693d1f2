"""Random networks of every operator that importers make, in the forms in which they make it; and
random cases of each operator alone."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from pipeline.graph.exponential import differences, exponentials, points
from pipeline.graph.operator import BoxValues, Operator
from pipeline.graph.operators.along import (
    ArgMax,
    LogSoftmax,
    MatMul,
    Normalize,
    Softmax,
    WideSoftmax,
)
from pipeline.graph.operators.conv2d import Conv2d, Dense, TransposeConv
from pipeline.graph.operators.lookup import Interpolate, Lookup
from pipeline.graph.operators.pairwise import (
    Add,
    Maximum,
    Minimum,
    Multiply,
    Order,
    Prelu,
    SquaredDifference,
)
from pipeline.graph.operators.placing import Concat, Pad, Rearrange, Reshape
from pipeline.graph.operators.pool2d import AveragePool2d, MaxPool2d, MinPool2d
from pipeline.graph.operators.recurrent import Gru, Lstm, LstmHidden, LstmMemory, TimeFilter
from pipeline.graph.operators.resize import Resize
from pipeline.graph.requant import FixedPoint, PowerOfTwo
from pipeline.graph.tensor import DType, IntArray, Tensor
from pipeline.importers.resampling import banded, cubic, linear, places
from tests.graphs import Net
from tests.passes.cells import cells, one_step, time_filter


def activations(net: Net) -> list[str]:
    return [net.image, *(op.output for op in net.operators)]


def drawn(net: Net, low: int, high: int, count: int = 2) -> tuple[int, ...]:
    return tuple(int(n) for n in net.rng.integers(low, high, count))


def thinned(net: Net, *shares: float) -> None:
    """Make a share of the rows and columns of the last operator's weights zero."""
    weights, dead = net.constants[net.operators[-1].parameters[0]], float(net.rng.choice(shares))
    weights[net.rng.random(len(weights)) < dead] = 0
    if weights.shape[-1] > 1:
        weights[..., net.rng.random(weights.shape[-1]) < dead] = 0


def convolution(net: Net) -> None:
    """Add a convolution of one group, of some or depthwise; with padding, strides, dilations."""
    rng, channels = net.rng, net.here[-1]
    divisors = [n for n in range(1, channels + 1) if channels % n == 0]
    groups = int(rng.choice([1, 1, channels, rng.choice(divisors)]))
    kernel, dilation = drawn(net, 1, 4), drawn(net, 1, 3)
    reach = [(k - 1) * d for k, d in zip(kernel, dilation, strict=True)]
    before = [int(rng.integers(0, r + 1)) for r in reach]
    after = [
        max(int(rng.integers(0, r + 1)), r + 1 - size - b)
        for r, b, size in zip(reach, before, net.here, strict=False)
    ]
    net.conv(
        groups * int(rng.integers(1, 4)), kernel, groups=groups, dilation=dilation,  # type: ignore[arg-type]
        stride=drawn(net, 1, 3), padding=(before[0], after[0], before[1], after[1]),
        requant=PowerOfTwo(0, 7) if rng.random() < 0.1 else None,
    )  # fmt: skip
    thinned(net, 0, 0, 0.3, 0.6)


def again(net: Net) -> None:
    """A convolution with the weights of an earlier one, where they fit."""
    for op in net.operators:
        if not isinstance(op, Conv2d) or op.groups > 1:
            continue
        _, height, width, depth = net.tensors[op.parameters[0]].shape
        if depth == net.here[-1]:
            name, padding = net.fresh("again"), (height - 1, height, width - 1, width)
            shared = replace(op, name=name, inputs=(net.last,), output=name, dilation=(1, 1))
            net.add(replace(shared, padding=padding))
            return
    convolution(net)


def dense(net: Net) -> None:
    net.dense(int(net.rng.integers(1, 7)))
    thinned(net, 0, 0.4)


def lookup(net: Net) -> None:
    net.lookup(like=net.last if net.rng.random() < 0.5 else None)


def pad(net: Net) -> None:
    """On any axes, the channels' too; often in front of a convolution."""
    around = net.rng.integers(0, 3, (len(net.here), 2))
    around[net.rng.random(len(around)) < 0.5] = 0
    net.pad(tuple((int(before), int(after)) for before, after in around))
    if len(net.here) == 3 and net.rng.random() < 0.4:
        convolution(net)


def sizes(net: Net) -> dict[str, Any]:
    """Windows that reach into the padding, but do not lie in it."""
    kernel = tuple(int(net.rng.integers(1, min(4, n + 1))) for n in net.here[:2])
    padding = tuple(int(net.rng.integers(0, k)) for k in kernel for _ in range(2))
    return {"kernel": kernel, "stride": drawn(net, 1, 4), "padding": padding, "clip": net.clip()}


def extreme(kind: type[MaxPool2d], net: Net) -> None:
    given, apart = sizes(net), drawn(net, 1, 3)
    reach = zip(given["kernel"], apart, net.here, strict=False)
    if net.rng.random() < 0.3 and all((k - 1) * d < n for k, d, n in reach):
        given["dilation"] = apart
    net.maximum(**given, kind=kind)


def average(net: Net) -> None:
    """In one quantization; or to another, by a shift where zero points are 0."""
    given = sizes(net)
    if net.rng.random() < 0.5:
        net.mean(**given)
        return
    name, kernel = net.fresh("average"), given["kernel"]
    kernel = net.here[:2] if net.rng.random() < 0.5 else kernel
    given |= {"kernel": kernel, "padding": (0, 0, 0, 0)}
    shifts = net.tensors[net.last].zero_point == 0 and net.rng.random() < 0.5
    factor = FixedPoint.of([float(net.rng.uniform(0.7, 1.5) / prod(kernel))])
    requant = PowerOfTwo(0, 2, "floor") if shifts else factor
    op = AveragePool2d(name, (net.last,), name, **given, requant=requant)
    net.add(op, like=net.last if shifts else None)


def rearrange(net: Net) -> None:
    """Axes change places; of each every n-th element from some on, repeated."""
    rng, here = net.rng, net.here
    axes, steps = tuple(int(n) for n in rng.permutation(len(here))), drawn(net, 1, 3, len(here))
    starts = tuple(int(rng.integers(0, max(1, extent // 2))) for extent in here)
    back = [rng.random() < 0.2 for _ in here]
    repeats, shape = tuple(int(rng.choice([1, 1, 2])) for _ in here), [0] * len(here)
    for axis, extent, start, step, repeat in zip(axes, here, starts, steps, repeats, strict=True):
        whole = -(-(extent - start) // step) * repeat
        shape[axis] = whole - int(rng.integers(repeat))
    starts = tuple(n - 1 - at if b else at for n, at, b in zip(here, starts, back, strict=True))
    steps = tuple(-step if b else step for step, b in zip(steps, back, strict=True))
    net.rearrange(tuple(shape), axes, starts, steps, repeats)  # type: ignore[arg-type]


def resize(net: Net) -> None:
    """To any size, by lines or, of larger images, by curves."""
    weights = []
    for extent, count in zip(net.here, drawn(net, 1, 9), strict=False):
        at = places(
            extent, count, str(net.rng.choice(["half_pixel", "align_corners", "asymmetric"]))
        )
        weights.append(cubic(extent, at) if net.rng.random() < 0.2 else linear(extent, at))
    (top, down), (left, along) = map(banded, weights)
    name, given = net.fresh("resize"), {"firsts": (top, left), "weights": (down, along)}
    net.add(Resize(name, (net.last,), name, **given), like=net.last)  # type: ignore[arg-type]


def spread(net: Net) -> None:
    """To a few pixels more or less than all that its windows reach."""
    rng, channels = net.rng, net.here[2]
    groups = int(rng.choice([n for n in range(1, channels + 1) if channels % n == 0]))
    given: dict[str, Any] = {
        "stride": drawn(net, 1, 4),
        "dilation": drawn(net, 1, 3),
        "before": drawn(net, 0, 3),
    }
    pairs = zip(net.here, given["stride"], drawn(net, -2, 3), strict=False)
    size = tuple(min(12, max(1, n * step + more)) for n, step, more in pairs)
    outs, taps, name = groups * int(rng.integers(1, 4)), drawn(net, 1, 5), net.fresh("spread")
    parameters = net.weights(name, (outs, *taps, channels // groups))
    requant = net.scales(outs, prod(taps) * channels // groups)
    given |= {"clip": net.clip(), "requant": requant, "groups": groups, "size": size}
    net.add(TransposeConv(name, (net.last,), name, parameters, **given))  # type: ignore[arg-type]


def matrices(net: Net) -> None:
    """Of what there is and the transpose of a function of it."""
    shape = (1,) * (3 - len(net.here)) + net.here
    first = net.last if len(net.here) == 3 else net.reshape(shape)
    other, turned = net.lookup(first), ((False, True), (True, False))[int(net.rng.integers(2))]
    if net.rng.random() < 0.3:
        other, turned = net.rearrange((shape[0], *shape[:0:-1]), (0, 2, 1)), (False, False)
    requant = net.scales(1, shape[1 if turned[0] else 2], per_channel=False)
    given: dict[str, Any] = {"operands": (first, other), "turned": turned, "requant": requant}
    name = net.fresh("product")
    net.add(MatMul(name, (first, other), name, **given))


def normalize(net: Net) -> None:
    """Over one axis, or the first and the last."""
    if len(net.here) < 3:
        net.reshape((1,) * (3 - len(net.here)) + net.here)
    name, axes = net.fresh("norm"), ((0,), (2,), (0, 2), (1,))[int(net.rng.integers(4))]
    given: dict[str, Any] = {"axes": axes, "centred": bool(net.rng.integers(2))}
    given["epsilon"] = int(net.rng.choice((0, 9, 100_000)))
    scale = FixedPoint.of([float(net.rng.uniform(20, 60))])
    net.add(Normalize(name, (net.last,), name, requant=scale, **given))


def reshape(net: Net) -> None:
    """To one axis, to the same shape, to an image of one row, or without axes of 1."""
    size, here = prod(net.here), net.here
    squeezed = tuple(n for n in here if n > 1) or (1,)
    shapes = [(size,), here, (1, size // here[-1], here[-1]), squeezed, (here[0], size // here[0])]
    net.reshape(shapes[int(net.rng.integers(len(shapes)))])


def operands(net: Net) -> tuple[str, str]:
    """The tensor in hand and what broadcasts to it: an activation, a constant, or what is made of
    constants alone, as some files have it."""
    rng, here, first = net.rng, net.here, net.last

    def constant(share: float) -> str:
        shape = tuple(int(n) if rng.random() < share else 1 for n in here)
        name = f"constant{len(net.constants)}"
        return net.constant(name, rng.integers(-128, 128, shape))

    other = str(rng.choice([n for n in activations(net) if broadcasts(net.tensors[n].shape, here)]))
    if len(here) == 3 and rng.random() < 0.2:
        other = net.rescaled_mean()
    elif rng.random() < 0.2:
        other = net.plus(constant(1), constant(0.6))
    elif other == first or rng.random() < 0.3:
        other = constant(0.6)
    return (first, other) if rng.random() < 0.5 else (other, first)


def broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    pairs = zip(shape[::-1], to[::-1], strict=False)
    return len(shape) <= len(to) and all(a in (1, b) for a, b in pairs)


def add(net: Net) -> None:
    net.plus(*operands(net))


def multiply(net: Net) -> None:
    net.times(*operands(net))


def pairs(kind: type[Operator], net: Net) -> None:
    """Of values that shifts alone bring to one scale."""
    halves = {"operand_requants": (FixedPoint.of([0.5]), FixedPoint.of([0.3]))}
    more = halves | {"requant": FixedPoint.of([2.0**-22])} if kind is SquaredDifference else {}
    net.pairs(kind, *operands(net), **more)


def prelu(net: Net) -> None:
    """Slopes that broadcast; some are 0."""
    shapes = (net.here[-1:], net.here[-1:], (1,) * len(net.here), net.here)
    net.slopes(shapes[int(net.rng.integers(len(shapes)))])
    slopes = net.constants[net.operators[-1].parameters[0]]
    slopes[..., net.rng.random(slopes.shape[-1]) < 0.3] = 0


def concat(net: Net) -> None:
    """With others of its quantization; one is made where there is none."""
    here, axis = net.last, int(net.rng.integers(len(net.here)))

    def joined(name: str) -> tuple[Any, ...]:
        """Return what has to be equal."""
        tensor = net.tensors[name]
        rest = tensor.shape[:axis] + tensor.shape[axis + 1 :]
        return len(tensor.shape), rest, tensor.scale, tensor.zero_point

    if net.rng.random() < 0.5:
        net.lookup(like=here) if net.rng.random() < 0.5 else net.reshape(net.here)
    others = [name for name in activations(net) if name != here and joined(name) == joined(here)]
    some = others or [net.lookup(here, like=here)]
    order = [here, *net.rng.permutation(some)[:2]]
    net.concat(tuple(str(each) for each in net.rng.permutation(order)), axis)


WAYS: tuple[tuple[type[Operator], Callable[[Net], object]], ...] = (
    (Add, add), (AveragePool2d, average), (Concat, concat), (Conv2d, convolution),
    (Conv2d, convolution), (Conv2d, again), (Dense, dense), (Lookup, lookup), (Lookup, lookup),
    *((kind, partial(extreme, kind)) for kind in (MaxPool2d, MinPool2d)),
    (MatMul, matrices), (Normalize, normalize),
    *((kind, partial(pairs, kind)) for kind in (Maximum, Minimum, Order, SquaredDifference)),
    (Multiply, multiply), (Pad, pad), (Pad, pad), (Prelu, prelu), (Rearrange, rearrange),
    *((kind, partial(cells, kind)) for kind in (Gru, Lstm)), (TimeFilter, time_filter),
    (Reshape, reshape), (Resize, resize), (Softmax, Net.softmax),
    (TransposeConv, spread),
)  # fmt: skip
"""With the class of the operator that is made; what passes look for is there more than once."""

IMAGES = (AveragePool2d, Conv2d, MaxPool2d, MinPool2d, Resize, TransposeConv)
"""Operators that take (h, w, c) alone."""

LARGEST = 400
"""Elements of what grows on: a thousand networks shall take seconds."""


def random_network(seed: int, most: int = 9) -> Net:
    """Up to ``most`` operators, one after the other or in branches; most end in a dense layer."""
    rng = np.random.default_rng(seed)
    net = Net((*rng.integers(1, 8, 2).tolist(), int(rng.integers(1, 5))), rng, zeros=0.5)
    for _ in range(int(rng.integers(1, most + 1))):
        small = [name for name in activations(net) if net.tensors[name].size <= LARGEST]
        if net.last not in small or rng.random() < 0.25:
            net.last = str(rng.choice(small))
        ways = [way for kind, way in WAYS if len(net.here) == 3 or kind not in IMAGES]
        ways[int(rng.integers(len(ways)))](net)
    if rng.random() < 0.7:
        for _ in range(int(rng.integers(1, 3))):
            dense(net)
    return net


# --- one operator

Case = tuple[Operator, dict[str, Tensor], dict[str, IntArray]]
"""An operator that makes "y", its tensors, and values for all that it reads."""
Make = Callable[[np.random.Generator], Case]


def case(kind: type[Operator], rng: np.random.Generator) -> Case:
    net = Net((*rng.integers(1, 6, 2).tolist(), int(rng.integers(1, 5))), rng, zeros=0.5)
    ways = [way for made, way in WAYS if made is kind]
    ways[int(rng.integers(len(ways)))](net)
    op = [each for each in net.operators if type(each) is kind][-1]
    tensors = {name: net.tensors[name] for name in (*op.inputs, *op.parameters)}
    given = {name: rng.integers(-128, 128, tensors[name].shape) for name in op.inputs}
    values = {name: net.constants[name] for name in op.parameters}
    tensors["y"] = replace(net.tensors[op.output], name="y")
    return replace(op, output="y"), tensors, values | given


def run(op: Operator, tensors: dict[str, Tensor], values: dict[str, IntArray]) -> IntArray:
    regions = {n: BoxValues(tensors[n].box, v[None]) for n, v in values.items()}
    box = tensors["y"].box
    return op.finish(tensors, box, op.accumulate(tensors, box, regions), regions)[0]


def lines(rng: np.random.Generator, softmax: bool = False) -> Case:
    """Draw one of 16 bits, which no network drawn here has."""
    shape, dtype = tuple(rng.integers(1, 5, 3).tolist()), DType.parse("int16")
    table = tuple(rng.integers(-(1 << 15), 1 << 15, 513).tolist())
    op: Operator = Interpolate("lines", ("x",), "y", table=table)
    if softmax:
        op = WideSoftmax(
            "softmax", ("x",), "y", exponentials=points(np.exp, -10, 0),
            reciprocals=points(lambda x: 1 / (1 + x), 0, 1), requant=FixedPoint.of([1.0]),
        )  # fmt: skip
    tensors = {name: Tensor(name, shape, dtype) for name in ("x", "y")}
    return op, tensors, {"x": rng.integers(-(1 << 15), 1 << 15, shape)}


def logarithms(rng: np.random.Generator) -> Case:
    """Draw one in place of a softmax."""
    op, tensors, values = case(Softmax, rng)
    scale = float(rng.uniform(0.01, 2))
    below = tuple(differences(scale)[0].clip(-20 << 26).tolist())
    logs = LogSoftmax("logs", op.inputs, "y", exponentials=exponentials(scale), differences=below)
    return logs, tensors, values


def argument(rng: np.random.Generator) -> Case:
    """Draw one, which makes what no operator here takes."""
    shape = tuple(rng.integers(1, 5, int(rng.integers(1, 4))).tolist())
    op = ArgMax(
        "places", ("x",), "y", axis=int(rng.integers(len(shape))), least=bool(rng.integers(2))
    )
    source = Tensor("x", shape, DType.parse("int8"))
    made = Tensor("y", op.infer({"x": source}), DType.parse("int32"))
    return op, {"x": source, "y": made}, {"x": rng.integers(-128, 128, shape)}


MAKERS: dict[type[Operator], Make] = {kind: partial(case, kind) for kind, _ in WAYS}
MAKERS[Interpolate] = lines
MAKERS[WideSoftmax] = partial(lines, softmax=True)
MAKERS[LogSoftmax] = logarithms
MAKERS[ArgMax] = argument
MAKERS |= {kind: partial(one_step, kind) for kind in (LstmHidden, LstmMemory)}
