"""Small int8 networks for tests: built by hand step by step, or drawn at random.

A random network is a DAG of what real ones are made of: chains of convolutions, residual blocks,
depthwise-separable and inverted blocks, squeeze-excitation, concatenation, pooling, a classifier.
Scales are chosen so that values spread over their range and neither vanish nor saturate throughout.
"""

from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from pipeline.graph.exponential import exponentials
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.along import Softmax
from pipeline.graph.operators.conv2d import Conv2d, Dense
from pipeline.graph.operators.lookup import Lookup
from pipeline.graph.operators.pairwise import Add, Multiply, Prelu
from pipeline.graph.operators.placing import Concat, Pad, Rearrange, Reshape
from pipeline.graph.operators.pool2d import AveragePool2d, MaxPool2d
from pipeline.graph.requant import FixedPoint, Mean, PowerOfTwo
from pipeline.graph.tensor import DType, IntArray, Tensor


@dataclass
class Net:
    """Collects operators; each method adds one. ``zeros``: the share of zero points that are 0."""

    shape: tuple[int, ...]
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    dtype: str = "int8"
    name: str = "net"
    zeros: float = 0.0

    def __post_init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.constants: dict[str, IntArray] = {}
        self.operators: list[Operator] = []
        self.last = self.image = self.tensor("image", self.shape, self.dtype)

    @property
    def here(self) -> tuple[int, ...]:
        """The shape of the tensor made last."""
        return self.tensors[self.last].shape

    def tensor(
        self, name: str, shape: tuple[int, ...], dtype: str = "int8", zero: int | None = None,
        scale: float | None = None,
    ) -> str:  # fmt: skip
        kind = DType.parse(dtype)
        if zero is None:
            zero = int(self.rng.integers(-20, 20)) + (0 if kind.signed else 128)
            if self.zeros and self.rng.random() < self.zeros:
                zero = 0
        if scale is None:
            scale = float(self.rng.uniform(0.01, 0.1))
        self.tensors[name] = Tensor(name, shape, kind, (scale,), zero)
        return name

    def constant(self, name: str, values: IntArray, dtype: str = "int8") -> str:
        self.constants[name] = np.asarray(values, dtype=np.int64)
        self.tensors[name] = Tensor(name, self.constants[name].shape, DType.parse(dtype))
        return name

    def add(self, op: Operator, like: str | None = None, dtype: str = "int8") -> str:
        """``like``: a tensor whose quantization the output shares."""
        shape = op.infer(self.tensors)
        if like is None:
            self.tensor(op.output, shape, dtype)
        else:
            base = self.tensors[like]
            self.tensor(op.output, shape, str(base.dtype), base.zero_point, base.scale[0])
        self.operators.append(op)
        op.infer(self.tensors)
        self.last = op.output
        return op.output

    def fresh(self, kind: str) -> str:
        return f"{kind}{len(self.operators)}"

    def scales(self, count: int, atoms: int, per_channel: bool = True) -> FixedPoint:
        """Such that a sum of ``atoms`` products of random bytes has a spread of about 40. Every
        other layer rounds once, as in networks that are quantized here."""
        typical = 40 / (np.sqrt(atoms) * 74 * 74)
        spread = self.rng.uniform(0.5, 2.0, count if per_channel else 1)
        if len(self.operators) % 2:
            return FixedPoint.rounding_once((typical * spread).tolist(), atoms << 16)
        return FixedPoint.of(typical * spread)

    def weights(self, name: str, shape: tuple[int, ...]) -> tuple[str, str]:
        """Random weights and biases."""
        weights = self.constant(f"{name}.weight", self.rng.integers(-127, 128, shape))
        bias = self.rng.integers(-3000, 3000, shape[0])
        return weights, self.constant(f"{name}.bias", bias, "int32")

    def roles(self, *operands: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """(inputs, parameters) of an operator."""
        held = tuple(name for name in operands if name in self.constants)
        return tuple(dict.fromkeys(name for name in operands if name not in held)), held

    def clip(self) -> tuple[int, int] | None:
        """Draw the clip of a fused activation, sometimes."""
        low = int(self.rng.integers(-40, 10))
        return (low, int(self.rng.integers(60, 128))) if self.rng.random() < 0.4 else None

    def conv(
        self,
        channels: int,
        kernel: tuple[int, int] = (3, 3),
        source: str | None = None,
        *,
        groups: int = 1,
        padding: tuple[int, int, int, int] | None = None,
        per_channel: bool = True,
        requant: FixedPoint | PowerOfTwo | None = None,
        **options: object,
    ) -> str:
        """``padding`` None keeps a stride-1 convolution's size."""
        name, source = self.fresh("conv"), source or self.last
        depth = self.tensors[source].shape[2] // groups
        if padding is None:
            dilation = options.get("dilation", (1, 1))
            assert isinstance(dilation, tuple)
            down, right = ((k - 1) * d for k, d in zip(kernel, dilation, strict=True))
            padding = down // 2, down - down // 2, right // 2, right - right // 2
        parameters = self.weights(name, (channels, *kernel, depth))
        op = Conv2d(
            name, (source,), name, parameters, padding=padding, groups=groups, clip=self.clip(),
            requant=requant or self.scales(channels, prod(kernel) * depth, per_channel),
            **options,  # type: ignore[arg-type]
        )  # fmt: skip
        return self.add(op)

    def depthwise(
        self, kernel: tuple[int, int] = (3, 3), multiplier: int = 1, **options: object
    ) -> str:
        channels = self.tensors[self.last].shape[2]
        return self.conv(channels * multiplier, kernel, groups=channels, **options)  # type: ignore[arg-type]

    def dense(
        self, outputs: int, source: str | None = None, dtype: str = "int8", **options: object
    ) -> str:
        name, source = self.fresh("dense"), source or self.last
        shape = self.tensors[source].shape
        parameters = self.weights(name, (outputs, *shape))
        requant = options.pop("requant", None) or self.scales(outputs, prod(shape))
        op = Dense(
            name, (source,), name, parameters, clip=None if dtype != "int8" else self.clip(),
            requant=requant, **options,  # type: ignore[arg-type]
        )  # fmt: skip
        return self.add(op, dtype=dtype)

    def mean(self, kernel: tuple[int, int], source: str | None = None, **options: object) -> str:
        """TFLite's AVERAGE_POOL_2D."""
        name, source = self.fresh("average"), source or self.last
        op = AveragePool2d(name, (source,), name, kernel=kernel, requant=Mean(), **options)  # type: ignore[arg-type]
        return self.add(op, like=source)

    def rescaled_mean(self, source: str | None = None) -> str:
        """TFLite's MEAN over the whole image, to another scale."""
        name, source = self.fresh("mean"), source or self.last
        height, width, _ = self.tensors[source].shape
        requant = FixedPoint.of([float(self.rng.uniform(0.5, 2)) / (height * width)])
        op = AveragePool2d(
            name, (source,), name, kernel=(height, width), stride=(1, 1), requant=requant
        )
        return self.add(op)

    def maximum(
        self, kernel: tuple[int, int], source: str | None = None,
        kind: type[MaxPool2d] = MaxPool2d, **options: object,
    ) -> str:  # fmt: skip
        name, source = self.fresh("max"), source or self.last
        op = kind(name, (source,), name, kernel=kernel, **options)  # type: ignore[arg-type]
        return self.add(op, like=source)

    def plus(self, left: str, right: str) -> str:
        name = self.fresh("add")
        one, other = self.rng.uniform(0.3, 1.0, 2)
        requants = FixedPoint.of([one]), FixedPoint.of([other])
        inputs, parameters = self.roles(left, right)
        op = Add(
            name, inputs, name, parameters, operands=(left, right), operand_requants=requants,
            requant=FixedPoint.of([float(self.rng.uniform(0.5, 1.2)) / (1 << 20)]),
            clip=self.clip(),
        )  # fmt: skip
        return self.add(op)

    def times(self, left: str, right: str) -> str:
        requant = FixedPoint.of([float(self.rng.uniform(0.005, 0.05))])
        return self.pairs(Multiply, left, right, requant=requant)

    def pairs(self, kind: type[Any], left: str, right: str, **more: Any) -> str:
        """Another function of two tensors, such as the greater one."""
        name, both = self.fresh(kind.__name__.lower()), (left, right)
        (given, held), clip = self.roles(*both), self.clip()
        return self.add(kind(name, given, name, held, operands=both, clip=clip, **more))

    def slopes(self, shape: tuple[int, ...], source: str | None = None) -> str:
        """A rectifier with slopes that broadcast."""
        name, source = self.fresh("prelu"), source or self.last
        slopes = self.constant(f"{name}.slopes", self.rng.integers(-128, 128, shape))
        op = Prelu(
            name, (source,), name, (slopes,), operands=(source, slopes), clip=self.clip(),
            requant=FixedPoint.of([float(self.rng.uniform(0.3, 2))]),
            below=FixedPoint.of([float(self.rng.uniform(0.002, 0.02))]),
        )  # fmt: skip
        return self.add(op)

    def concat(self, names: tuple[str, ...], axis: int = 2) -> str:
        """The inputs need one quantization: see ``like``."""
        name = self.fresh("concat")
        return self.add(Concat(name, names, name, axis=axis), like=names[0])

    def like(self, source: str, other: str) -> str:
        """``source`` in the quantization of ``other``, by a table."""
        return self.lookup(source, like=other)

    def lookup(self, source: str | None = None, like: str | None = None) -> str:
        name, source = self.fresh("lookup"), source or self.last
        bits = 1 << self.tensors[source].dtype.bits
        steps = np.arange(bits) - bits // 2 + self.rng.integers(-30, 30, bits)
        table = np.clip(steps, -128, 127) + (self.tensors[like].dtype.minimum + 128 if like else 0)
        op = Lookup(name, (source,), name, table=tuple(int(entry) for entry in table))
        return self.add(op, like=like)

    def pad(self, padding: tuple[tuple[int, int], ...], source: str | None = None) -> str:
        name, source = self.fresh("pad"), source or self.last
        return self.add(Pad(name, (source,), name, padding=padding), like=source)

    def reshape(self, shape: tuple[int, ...], source: str | None = None) -> str:
        name, source = self.fresh("reshape"), source or self.last
        return self.add(Reshape(name, (source,), name, shape=shape), like=source)

    def rearrange(
        self,
        shape: tuple[int, ...],
        axes: tuple[int, ...] = (0, 1, 2),
        starts: tuple[int, ...] = (0, 0, 0),
        steps: tuple[int, ...] = (1, 1, 1),
        repeats: tuple[int, ...] = (1, 1, 1),
    ) -> str:
        name, source = self.fresh("rearrange"), self.last
        op = Rearrange(
            name, (source,), name, shape=shape, axes=axes, starts=starts, steps=steps,
            repeats=repeats,
        )  # fmt: skip
        return self.add(op, like=source)

    def softmax(self, source: str | None = None) -> str:
        name, source = self.fresh("softmax"), source or self.last
        op = Softmax(name, (source,), name, exponentials=exponentials(0.1))
        self.tensor(name, op.infer(self.tensors), "int8", -128, 1 / 256)
        self.operators.append(op)
        self.last = name
        return name

    def graph(self) -> Graph:
        operators, ends = tuple(self.operators), ((self.image,), (self.last,))
        return Graph(self.name, self.tensors, operators, self.constants, *ends)


class Chained:
    """A net whose methods give it back, to be called one after the other."""

    def __init__(self, net: Net) -> None:
        self.net = net

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.net, name)
        if name == "graph" or not callable(found):
            return found

        def called(*values: Any, **options: Any) -> Chained:
            found(*values, **options)
            return self

        return called


def random_graph(seed: int) -> Graph:
    """A network of a few blocks on an image of at most 12 x 12 x 8."""
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(4, 13)), int(rng.integers(4, 13)), int(rng.integers(1, 9)))
    net = Net(shape, rng, "uint8" if rng.random() < 0.2 else "int8", f"random{seed}")
    for _ in range(int(rng.integers(1, 5))):
        BLOCKS[int(rng.integers(len(BLOCKS)))](net)
    if rng.random() < 0.7:
        classifier(net)
    return net.graph()


def _channels(net: Net) -> int:
    return int(net.rng.integers(1, 13))


def _kernel(net: Net) -> tuple[int, int]:
    height, width, _ = net.here
    return int(net.rng.integers(1, min(4, height) + 1)), int(net.rng.integers(1, min(4, width) + 1))


def _window(net: Net) -> tuple[tuple[int, int], dict[str, Any]]:
    """A kernel that fits, and its stride and padding."""
    kernel = _kernel(net)
    stride = (int(net.rng.integers(1, 3)), int(net.rng.integers(1, 3)))
    padding = tuple(int(net.rng.integers(0, k)) for k in kernel for _ in range(2))
    return kernel, {"stride": stride, "padding": padding}


def _plain(net: Net) -> None:
    """Any convolution that fits."""
    kernel, moved = _window(net)
    dilation = (1, 1)
    height, width, depth = net.here
    if height > 2 * kernel[0] and width > 2 * kernel[1] and net.rng.random() < 0.3:
        dilation = (2, int(net.rng.integers(1, 3)))
    groups = int(net.rng.choice([g for g in (1, 1, 2, 3, 4) if depth % g == 0]))
    channels = groups * int(net.rng.integers(1, 5)) if groups > 1 else _channels(net)
    net.conv(
        channels, kernel, dilation=dilation, groups=groups, **moved,
        per_channel=bool(net.rng.random() < 0.7),
    )  # fmt: skip


def _residual(net: Net) -> None:
    start, depth = net.last, net.here[2]
    net.conv(_channels(net))
    net.plus(net.conv(depth, (1, 1)), start)


def _separable(net: Net) -> None:
    net.depthwise(_kernel(net), int(net.rng.integers(1, 4)))
    net.conv(_channels(net), (1, 1))


def _inverted(net: Net) -> None:
    """MobileNetV2's block, with squeeze-excitation sometimes."""
    start, depth = net.last, net.here[2]
    net.conv(depth * int(net.rng.integers(2, 4)), (1, 1))
    net.depthwise()
    if net.rng.random() < 0.5:
        _excite(net)
    net.plus(start, net.conv(depth, (1, 1)))


def _excite(net: Net) -> None:
    start, depth = net.last, net.here[2]
    net.rescaled_mean()
    net.conv(max(1, depth // 2), (1, 1))
    net.times(start, net.lookup(net.conv(depth, (1, 1))))


def _branches(net: Net) -> None:
    start = net.last
    first = net.conv(_channels(net), source=start)
    second = net.like(net.conv(_channels(net), (1, 1), source=start), first)
    parts = [first, second]
    if net.rng.random() < 0.5:
        parts.append(net.like(start, first))
    net.concat(tuple(parts))


def _pooled(net: Net) -> None:
    kernel, moved = _window(net)
    (net.mean if net.rng.random() < 0.5 else net.maximum)(kernel, **moved)


def _padded(net: Net) -> None:
    pads = tuple((int(net.rng.integers(0, 3)), int(net.rng.integers(0, 3))) for _ in range(3))
    net.pad(pads)
    net.conv(_channels(net), (1, 1))


def _constant(net: Net) -> None:
    """A sum or product with a constant for each channel."""
    name = net.constant(net.fresh("constant"), net.rng.integers(-128, 128, net.here[2]))
    (net.plus if net.rng.random() < 0.5 else net.times)(net.last, name)


def classifier(net: Net) -> None:
    if net.rng.random() < 0.3:
        net.reshape((prod(net.here),))
    net.dense(int(net.rng.integers(2, 12)))
    if net.rng.random() < 0.6:
        net.softmax()


BLOCKS = (
    _plain, _plain, _residual, _separable, _inverted, _branches, _pooled, _padded, _constant,
    _excite,
)  # fmt: skip
