"""Random networks of every operator that importers make, in the forms in which they make it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from pipeline.graph.exponential import exponentials
from pipeline.graph.operator import Operator
from pipeline.graph.operators.add import Add
from pipeline.graph.operators.concat import Concat
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.dense import Dense
from pipeline.graph.operators.lookup import Lookup
from pipeline.graph.operators.multiply import Multiply
from pipeline.graph.operators.pad import Pad
from pipeline.graph.operators.pool2d import AveragePool2d, MaxPool2d
from pipeline.graph.operators.prelu import Prelu
from pipeline.graph.operators.rearrange import Rearrange
from pipeline.graph.operators.reshape import Reshape
from pipeline.graph.operators.softmax import Softmax
from pipeline.graph.requant import FixedPoint, Mean, PowerOfTwo
from tests.passes.networks import Network


def convolution(net: Network) -> None:
    """Of one group, of some, depthwise; around padding, with strides and dilations."""
    rng, channels = net.rng, net.here[-1]
    divisors = [n for n in range(1, channels + 1) if channels % n == 0]
    groups = int(rng.choice([1, 1, channels, rng.choice(divisors)]))
    kernel = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    dilation = tuple(int(n) for n in rng.integers(1, 3, 2))
    reach = [(k - 1) * d for k, d in zip(kernel, dilation, strict=True)]
    before = [int(rng.integers(0, r + 1)) for r in reach]
    after = [
        max(int(rng.integers(0, r + 1)), r + 1 - size - b)
        for r, b, size in zip(reach, before, net.here, strict=False)
    ]
    options: dict[str, Any] = {"requant": PowerOfTwo(0, 7)} if rng.random() < 0.1 else {}
    net.conv(
        groups * int(rng.integers(1, 4)), kernel, groups,
        dead=float(rng.choice([0.0, 0.0, 0.3, 0.6])), dilation=dilation, clip=clip(net),
        stride=tuple(int(n) for n in rng.integers(1, 3, 2)),
        padding=(before[0], after[0], before[1], after[1]), **options,
    )  # fmt: skip


def again(net: Network) -> None:
    """A convolution with the weights of an earlier one, where they fit."""
    for op in net.operators:
        if not isinstance(op, Conv2d) or op.groups > 1:
            continue
        _, height, width, depth = net.tensors[op.parameters[0]].shape
        if depth == net.here[-1]:
            name, padding = net.name("again"), (height - 1, height, width - 1, width)
            shared = replace(op, name=name, inputs=(net.last,), output=name, dilation=(1, 1))
            net.append(replace(shared, padding=padding), same=False)
            return
    convolution(net)


def clip(net: Network) -> tuple[int, int] | None:
    return (-128, 127) if net.rng.random() < 0.2 else (-60, 90) if net.rng.random() < 0.3 else None


def dense(net: Network) -> None:
    net.dense(int(net.rng.integers(1, 7)), dead=float(net.rng.choice([0.0, 0.4])))


def lookup(net: Network) -> None:
    net.lookup(same=bool(net.rng.integers(2)))


def pad(net: Network) -> None:
    """On any axes, the channels' too."""
    around = net.rng.integers(0, 3, (len(net.here), 2))
    around[net.rng.random(len(around)) < 0.5] = 0
    net.pad(*((int(before), int(after)) for before, after in around))


def sizes(net: Network) -> dict[str, Any]:
    """Windows that reach into the padding, but do not lie in it."""
    rng = net.rng
    kernel = tuple(int(rng.integers(1, min(4, n + 1))) for n in net.here[:2])
    padding = tuple(int(rng.integers(0, k)) for k in kernel for _ in range(2))
    stride = tuple(int(n) for n in rng.integers(1, 4, 2))
    return {"kernel": kernel, "stride": stride, "padding": padding, "clip": clip(net)}


def maximum(net: Network) -> None:
    name = net.name("maximum")
    net.append(MaxPool2d(name, (net.last,), name, **sizes(net)), same=True)


def average(net: Network) -> None:
    """In one quantization; or to another, by a shift where zero points are 0."""
    name, given = net.name("average"), sizes(net)
    if net.rng.random() < 0.5:
        op = AveragePool2d(name, (net.last,), name, **given, requant=Mean())
        net.append(op, same=True)
        return
    kernel = net.here[:2] if net.rng.random() < 0.5 else given["kernel"]
    given |= {"kernel": kernel, "padding": (0, 0, 0, 0)}
    shifts = net.tensors[net.last].zero_point == 0 and net.rng.random() < 0.5
    factor = float(net.rng.uniform(0.7, 1.5) / np.prod(kernel))
    requant = PowerOfTwo(0, 2, "floor") if shifts else FixedPoint.of([factor])
    op = AveragePool2d(name, (net.last,), name, **given, requant=requant)
    net.append(op, same=False, **({"zero_point": 0} if shifts else {}))


def rearrange(net: Network) -> None:
    """Axes change places; of each every n-th element from some on, repeated."""
    rng, here = net.rng, net.here
    axes = tuple(int(n) for n in rng.permutation(len(here)))
    starts, steps, repeats, shape = [], [], [], [0] * len(here)
    for extent, axis in zip(here, axes, strict=True):
        start, step = int(rng.integers(0, max(1, extent // 2))), int(rng.integers(1, 3))
        repeat = int(rng.choice([1, 1, 2]))
        starts, steps, repeats = [*starts, start], [*steps, step], [*repeats, repeat]
        shape[axis] = -(-(extent - start) // step) * repeat
    name = net.name("rearrange")
    op = Rearrange(
        name, (net.last,), name, shape=tuple(shape), axes=axes, starts=tuple(starts),
        steps=tuple(steps), repeats=tuple(repeats),
    )  # fmt: skip
    net.append(op, same=True)


def reshape(net: Network) -> None:
    """To one axis, to the same shape, to an image of one row, or without axes of 1."""
    size, here = int(np.prod(net.here)), net.here
    squeezed = tuple(n for n in here if n > 1) or (1,)
    shapes = [(size,), here, (1, size // here[-1], here[-1]), squeezed, (here[0], size // here[0])]
    net.reshape(*shapes[int(net.rng.integers(len(shapes)))])


def softmax(net: Network) -> None:
    name = net.name("softmax")
    op = Softmax(name, (net.last,), name, exponentials=exponentials(0.1))
    net.append(op, same=False, zero_point=-128)


def operands(net: Network) -> tuple[str, str]:
    """The tensor in hand, or a constant, and what broadcasts to it: an activation or a constant."""
    rng, here = net.rng, net.here
    fitting = [name for name in net.activations if broadcasts(net.tensors[name].shape, here)]
    other = str(rng.choice(fitting))
    if other == net.last or rng.random() < 0.4:
        shape = tuple(int(n) if rng.random() < 0.6 else 1 for n in here)
        other = net.constant(net.name("constant"), rng.integers(-128, 128, shape))
    first = net.last
    if rng.random() < 0.1:  # a file may compute with constants alone
        first = net.constant(net.name("alone"), rng.integers(-128, 128, here))
    return (first, other) if rng.random() < 0.5 else (other, first)


def broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    pairs = zip(shape[::-1], to[::-1], strict=False)
    return len(shape) <= len(to) and all(a in (1, b) for a, b in pairs)


def add(net: Network) -> None:
    net.add(*operands(net), clip=clip(net))


def multiply(net: Network) -> None:
    name, pair = net.name("multiply"), operands(net)
    inputs, parameters = net.roles(pair)
    factor = FixedPoint.of([float(net.rng.uniform(0.005, 0.02))])
    op = Multiply(name, inputs, name, parameters, operands=pair, requant=factor, clip=clip(net))
    net.append(op, same=False)


def prelu(net: Network) -> None:
    """A slope for each channel, or one for all; some are 0."""
    name = net.name("prelu")
    count = net.here[-1] if net.rng.random() < 0.7 else 1
    values = net.rng.integers(-127, 128, (*[1] * (len(net.here) - 1), count))
    values[..., net.rng.random(count) < 0.3] = 0
    slopes = net.constant(f"{name}.slope", values)
    ends = (0.5, 1.0), (0.001, 0.01)
    factor, below = (FixedPoint.of([float(net.rng.uniform(*each))]) for each in ends)
    op = Prelu(name, (net.last,), name, (slopes,), requant=factor, below=below, clip=clip(net))
    net.append(op, same=False)


def concat(net: Network) -> None:
    """With others of its quantization; one is made where there is none."""
    here, axis = net.last, int(net.rng.integers(len(net.here)))

    def joined(name: str) -> tuple[Any, ...]:
        """What has to be equal."""
        tensor = net.tensors[name]
        rest = tensor.shape[:axis] + tensor.shape[axis + 1 :]
        return len(tensor.shape), rest, tensor.scale, tensor.zero_point

    if net.rng.random() < 0.5:
        net.lookup(same=True) if net.rng.random() < 0.5 else net.reshape(*net.here)
    others = [name for name in net.activations if name != here and joined(name) == joined(here)]
    if not others:
        others = [net.lookup(same=True).last]
    order = [here, *net.rng.permutation(others)[:2]]
    name = net.name("concat")
    inputs = tuple(str(each) for each in net.rng.permutation(order))
    net.append(Concat(name, inputs, name, axis=axis), same=True)


WAYS: tuple[tuple[type[Operator], Callable[[Network], None]], ...] = (
    (Add, add),
    (AveragePool2d, average),
    (Concat, concat),
    (Conv2d, convolution),
    (Conv2d, convolution),
    (Conv2d, again),
    (Dense, dense),
    (Lookup, lookup),
    (MaxPool2d, maximum),
    (Multiply, multiply),
    (Pad, pad),
    (Pad, pad),
    (Prelu, prelu),
    (Rearrange, rearrange),
    (Reshape, reshape),
    (Softmax, softmax),
)
"""With the class of the operator that is made; what passes look for is there more than once."""

IMAGES = (AveragePool2d, Conv2d, MaxPool2d)
"""What takes (h, w, c) alone."""

LARGEST = 400
"""Elements of what grows on: a thousand networks shall take seconds."""


def random_network(seed: int) -> Network:
    """Up to nine operators, one after the other or in branches; most end in a dense layer."""
    rng = np.random.default_rng(seed)
    sides = rng.integers(1, 8, 2).tolist()
    net = Network(rng, (*sides, int(rng.integers(1, 5))))
    for _ in range(int(rng.integers(1, 10))):
        small = [name for name in net.activations if np.prod(net.tensors[name].shape) <= LARGEST]
        if net.last not in small or rng.random() < 0.25:
            net.last = str(rng.choice(small))
        ways = [way for kind, way in WAYS if len(net.here) == 3 or kind not in IMAGES]
        ways[int(rng.integers(len(ways)))](net)
    if rng.random() < 0.7:
        for _ in range(int(rng.integers(1, 3))):
            dense(net)
    return net
