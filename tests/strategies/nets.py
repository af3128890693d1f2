"""int8 graphs of any topology, random weights; networks of published peaks, or random ones."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.along import Softmax
from pipeline.graph.operators.conv2d import Conv2d, Dense
from pipeline.graph.operators.lookup import Lookup
from pipeline.graph.operators.pairwise import Add, Multiply
from pipeline.graph.operators.placing import Concat, Reshape
from pipeline.graph.operators.pool2d import AveragePool2d, MaxPool2d
from pipeline.graph.requant import FixedPoint, Mean
from pipeline.graph.tensor import DType, IntArray, Tensor

INT8 = DType(8, signed=True)


@dataclass
class Net:
    """Builds a graph; methods return outputs. Without ``weights`` they are zeros of no memory."""

    shape: tuple[int, ...]
    seed: int = 0
    weights: bool = True
    tensors: dict[str, Tensor] = field(default_factory=dict)
    constants: dict[str, IntArray] = field(default_factory=dict)
    operators: list[Operator] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.tensors["input"] = Tensor("input", self.shape, INT8)

    def graph(self, output: str | None = None) -> Graph:
        last = output or self.operators[-1].output
        operators = tuple(self.operators)
        return Graph("net", self.tensors, operators, self.constants, ("input",), (last,))

    def frame(self) -> IntArray:
        return self.rng.integers(-128, 128, self.shape)

    def add_op(self, kind: type[Operator], *inputs: str, **options: object) -> str:
        name = f"{kind.__name__.lower()}{len(self.operators)}"
        op = kind(name, inputs, name, **options)  # type: ignore[arg-type]
        self.operators.append(op)
        self.tensors[name] = Tensor(name, op.infer(self.tensors), INT8)
        return name

    def constant(self, shape: tuple[int, ...], bits: int) -> str:
        name = f"constant{len(self.constants)}"
        values = self.rng.integers(-128, 128, shape) if self.weights else np.zeros((), np.int64)
        self.constants[name] = np.broadcast_to(values, shape)
        self.tensors[name] = Tensor(name, shape, DType(bits, signed=True))
        return name

    def conv(
        self, x: str, channels: int, kernel: tuple[int, int] | int = 1, stride: int = 1,
        depthwise: bool = False, dilation: int = 1, padding: int | None = None, groups: int = 1,
    ) -> str:  # fmt: skip
        """Padded so that strides of 1 keep the size, or by ``padding`` on each side."""
        sides = (kernel, kernel) if isinstance(kernel, int) else kernel
        around: list[int] = []
        for extent, side in zip(self.tensors[x].shape, sides, strict=False):
            reach = (-(-extent // stride) - 1) * stride + (side - 1) * dilation + 1
            both = max(0, reach - extent)
            around += [both // 2, both - both // 2] if padding is None else [padding] * 2
        depth = self.tensors[x].shape[2]
        groups = depth if depthwise else groups
        weights = self.constant((channels, *sides, depth // groups), 8)
        requant = FixedPoint.of([2.0**-8 / (sides[0] * sides[1] * (depth // groups)) ** 0.5])
        bias = self.constant((channels,), 32)
        return self.add_op(
            Conv2d, x, parameters=(weights, bias), stride=(stride, stride), groups=groups,
            dilation=(dilation, dilation), padding=tuple(around), requant=requant,
        )  # fmt: skip

    def depthwise(self, x: str, kernel: int = 3, stride: int = 1) -> str:
        return self.conv(x, self.tensors[x].shape[2], kernel, stride, depthwise=True)

    def separable(self, x: str, channels: int, stride: int = 1) -> str:
        return self.conv(self.depthwise(x, 3, stride), channels)

    def dense(self, x: str, outputs: int) -> str:
        weights = self.constant((outputs, *self.tensors[x].shape), 8)
        requant = FixedPoint.of([2.0**-8 / self.tensors[x].size ** 0.5])
        return self.add_op(
            Dense, x, parameters=(weights, self.constant((outputs,), 32)), requant=requant
        )

    def add(self, a: str, b: str) -> str:
        half = FixedPoint.of([0.5])
        return self.add_op(
            Add, *dict.fromkeys((a, b)), operands=(a, b), operand_requants=(half, half),
            requant=FixedPoint.of([2.0**-19]),
        )  # fmt: skip

    def multiply(self, a: str, b: str) -> str:
        requant = FixedPoint.of([2.0**-6])
        return self.add_op(Multiply, *dict.fromkeys((a, b)), operands=(a, b), requant=requant)

    def lookup(self, x: str) -> str:
        table = tuple(int(n) for n in self.rng.integers(-128, 128, 256))
        return self.add_op(Lookup, x, table=table)

    def concat(self, *inputs: str) -> str:
        return self.add_op(Concat, *inputs, axis=len(self.tensors[inputs[0]].shape) - 1)

    def reshape(self, x: str, *shape: int) -> str:
        return self.add_op(Reshape, x, shape=shape)

    def softmax(self, x: str) -> str:
        return self.add_op(Softmax, x, exponentials=tuple(range((1 << 31) - 1, 0, -(1 << 23))))

    def average(self, x: str) -> str:
        height, width, _ = self.tensors[x].shape
        size = (height, width)
        return self.add_op(AveragePool2d, x, kernel=size, stride=size, requant=Mean())

    def maximum(self, x: str, kernel: int = 2, stride: int = 2) -> str:
        return self.add_op(MaxPool2d, x, kernel=(kernel, kernel), stride=(stride, stride))

    def head(self, x: str, classes: int) -> Graph:
        self.softmax(self.dense(self.average(x), classes))
        return self.graph()

    def inverted(
        self, x: str, c_out: int, expand: int, kernel: int, stride: int, squeeze: int = 0
    ) -> str:
        """An inverted residual, with squeeze-excitation to ``squeeze`` channels unless 0."""
        c_in, y = self.tensors[x].shape[2], x
        if expand > 1:
            y = self.conv(y, c_in * expand)
        y = self.depthwise(y, kernel, stride)
        if squeeze:
            gate = self.conv(self.conv(self.average(y), squeeze), c_in * expand)
            y = self.multiply(y, self.lookup(gate))
        y = self.conv(y, c_out)
        return self.add(y, x) if stride == 1 and c_in == c_out else y


def fig1_block() -> Graph:
    """Pex, figure 1: 13x13, 24 -> 144 -> 24 with the residual's sum; its input stays alive."""
    net = Net((13, 13, 24))
    net.inverted("input", 24, 6, 3, 1)
    return net.graph()


def mobilenet_v2(size: int, classes: int = 1000, weights: bool = True) -> Graph:
    net = Net((size, size, 3), weights=weights)
    x = net.conv("input", 32, 3, 2)
    stages = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
              (6, 160, 3, 2), (6, 320, 1, 1))  # fmt: skip
    for expand, channels, repetitions, first in stages:
        for n in range(repetitions):
            x = net.inverted(x, channels, expand, 3, 1 if n else first)
    return net.head(net.conv(x, 1280), classes)


def efficientnet_b0(size: int = 160) -> Graph:
    net = Net((size, size, 3))
    x = net.conv("input", 32, 3, 2)
    stages = ((1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3),
              (6, 5, 1, 112, 3), (6, 5, 2, 192, 4), (6, 3, 1, 320, 1))  # fmt: skip
    for expand, kernel, first, channels, repetitions in stages:
        for n in range(repetitions):
            squeeze = net.tensors[x].shape[2] // 4
            x = net.inverted(x, channels, expand, kernel, 1 if n else first, squeeze)
    return net.head(x, 1000)


def res15() -> Graph:
    net = Net((49, 10, 1))
    x = net.conv("input", 45, 3)
    for block in range(6):
        dilations = [2 ** ((2 * block + n) // 3) for n in range(2)]
        y = net.conv(x, 45, 3, dilation=dilations[0])
        x = net.add(net.conv(y, 45, 3, dilation=dilations[1]), x)
    return net.head(net.conv(x, 45, 3, dilation=16), 12)


def ds_cnn(channels: tuple[int, ...], kernel: tuple[int, int] = (10, 4), stride: int = 2) -> Graph:
    """DS-CNN S: five times 64. MicroNets-KWS-L: stride 1 first, then 2."""
    net = Net((49, 10, 1))
    x = net.conv("input", channels[0], kernel, stride)
    for n, c_out in enumerate(channels[1:]):
        x = net.separable(x, c_out, 2 if stride == 1 and n == 0 else 1)
    return net.head(x, 12)


def micronet_kws_l() -> Graph:
    return ds_cnn((276, 248, 276, 276, 248, 248, 248, 248), stride=1)


def vgg16(weights: bool = False) -> Graph:
    net, x = Net((224, 224, 3), weights=weights), "input"
    for channels, convolutions in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(convolutions):
            x = net.conv(x, channels, 3)
        x = net.maximum(x)
    for outputs in (4096, 4096, 1000):
        x = net.dense(x, outputs)
    return net.graph()


def narrow(depth: int = 2, side: int = 16) -> Graph:
    """Inverted residuals, as in a MobileNetV2: wide layers hold most."""
    net = Net((side, side, 3))
    x = net.conv("input", 8, 3, 2)
    for number in range(depth):
        x = net.inverted(x, 8 + 4 * number, 6, 3, 1 + number % 2)
    return net.head(x, 4)


def residual(seed: int) -> Graph:
    """Two 3x3 convolutions, their taps apart or not, added to what they began with: with 8 bits the
    first's channels are made one by one and added to the second's sums."""
    rng = np.random.default_rng(seed)
    channels = int(rng.choice([9, 12, 15]))
    net = Net((int(rng.integers(7, 11)), int(rng.integers(7, 11)), channels), seed)
    y = net.conv("input", channels, 3, dilation=1 + seed % 5)
    y = net.conv(y, channels, 3, dilation=1 + seed // 2 % 5)
    net.dense(net.average(net.add("input", y)), 3)
    return net.graph()


def entrance(seed: int) -> Graph:
    """The beginning of MobileNetV2; with 8 bits the last sums are added channel by channel."""
    rng = np.random.default_rng(seed)
    height, width = (int(n) for n in rng.integers(9, 22, 2))
    net = Net((height, width, int(rng.integers(3, 6))), seed)
    x = net.conv("input", 12, 3, int(rng.integers(1, 3)))
    x = net.conv(net.depthwise(x, int(rng.choice([3, 5])), int(rng.integers(1, 3))), 9)
    net.dense(net.average(x), 3)
    return net.graph()


def grown(net: Net, rng: np.random.Generator, kinds: Sequence[str], channels: Sequence[int],
          kernels: Sequence[int] = (1,), wanted: int = 7) -> list[str]:  # fmt: skip
    """Add operators of ``kinds``, each of one of the latest tensors, until there are ``wanted``.

    Returns: the outputs that nothing reads.
    """
    known = ["input"]
    while len(net.operators) < wanted:
        x = known[int(rng.integers(max(0, len(known) - 3), len(known)))]
        shape, stride = net.tensors[x].shape, int(rng.choice([1, 1, 2]))
        same, alike = ([n for n in known if net.tensors[n].shape[:axes] == shape[:axes]]
                       for axes in (3, 2))  # fmt: skip
        other, beside = str(rng.choice(same)), str(rng.choice(alike))
        match rng.choice(kinds):
            case "conv":
                made = net.conv(x, int(rng.choice(channels)), int(rng.choice(kernels)), stride)
            case "depthwise":
                made = net.depthwise(x, int(rng.choice(kernels)), stride)
            case "average":
                made = net.average(x)
            case "maximum" if min(shape[:2]) > 3:
                made = net.maximum(x, int(rng.integers(2, 4)), stride)
            case "add":
                made = net.add(x, other)
            case "multiply":
                made = net.multiply(x, other)
            case "gate":
                made = net.multiply(x, net.conv(net.average(x), int(rng.choice([1, shape[2]]))))
            case "concat" if beside != x:
                made = net.concat(x, beside)
            case "reshape":
                flat = net.lookup(net.reshape(x, net.tensors[x].size))
                made = net.reshape(flat, *shape)
            case _:
                made = net.lookup(x)
        known.append(made)
    read = {name for op in net.operators for name in op.inputs}
    return [op.output for op in net.operators if op.output not in read]


def joined(net: Net, ends: list[str]) -> str:
    """The sum of ``ends``, by way of dense layers of two outputs where shapes differ."""
    last = ends[0]
    for end in ends[1:]:
        pair = (last, end)
        if net.tensors[last].shape != net.tensors[end].shape:
            pair = (net.dense(last, 2), net.dense(end, 2))
        last = net.add(*pair)
    return last


LOOPABLE = (*["conv"] * 4, *["depthwise"] * 3, "average", "lookup", "add", "multiply", "gate")


def loopable(seed: int, most: int = 6) -> Graph:
    """Up to ``most`` operators on few pixels with loops over channels to be found: aggregating and
    channel-wise ones, one branch or several; drawn again while there are more."""
    rng = np.random.default_rng(seed)
    while True:
        side, channels = int(rng.integers(1, 4)), rng.choice([2, 4, 6, 12, 24], 3).tolist()
        net = Net((side, side, int(rng.integers(1, 5))), seed)
        ends = grown(net, rng, LOOPABLE, channels, (1, 3), int(rng.integers(2, 7)))
        graph = net.graph(joined(net, ends))
        if len(graph.operators) <= most:
            return graph
