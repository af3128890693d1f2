"""Networks of 4 bits, of 8, and of both: what assembly is for, what is beyond it, what has none."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.pool2d import AveragePool2d, MaxPool2d
from pipeline.graph.requant import FixedPoint, Mean
from pipeline.hardware import Hardware
from pipeline.models.small_cnn import SmallCnn
from pipeline.plan.maps import Rows
from pipeline.plan.vocabulary import Affine, Plan
from pipeline.quantize.int4 import Int4
from pipeline.strategies.ordinary import Ordinary
from pipeline.training.environment import Run
from pipeline.training.random_weights import RandomWeights
from tests.graphs import Chained, Net
from tests.strategies.chains import Chain


def mixed(name: str = "c") -> Graph:
    """Nibbles requantized by shifts, then bytes by multipliers of each channel, then by shifts."""
    chain = Chain((9, 8, 2)).conv("a", 5).conv("b", 4, dtype="int8")
    weight = chain.constant("c.weight", (6, 3, 3, 4), "int8")
    bias = chain.constant("c.bias", (6,), "int32")
    chain.constants["c.bias"] //= 1 << 20
    requant = FixedPoint.of([0.002 + 0.0005 * n for n in range(6)])
    chain.add(Conv2d(name, ("b",), name, (weight, bias), requant=requant), "int8")
    return chain.maximum("m").dense("d", 3, "int32").graph()


def bytes_only(*shape: int) -> Graph:
    return Chained(Net(shape, np.random.default_rng(0))).conv(4).depthwise().dense(3).graph()


def trained() -> Graph:
    """As a training leaves ``model.bits=[4,8,4]``, the second convolution depthwise."""
    model = SmallCnn((12, 11, 1), 3, ((5, 3, 1), (0, 3, 1), (4, 2, 2)), (), 1, (4, 8, 4))
    weights = RandomWeights(images=4).train(model, {}, Run(1)).weights
    return Int4(images=8).graph("trained", model, weights, {})


def pooled(kind: str) -> Graph:
    """An image with a zero point, pooled by 2x3, then a convolution by shifts."""
    chain = Chain((6, 9, 2), "int8")
    chain.tensors["image"] = replace(chain.tensors["image"], zero_point=-7)
    sizes = {"kernel": (2, 3), "stride": (2, 3)}
    if kind == "maximum":
        chain.add(MaxPool2d("p", ("image",), "p", clip=(-20, 90), **sizes), "int8")  # type: ignore[arg-type]
    else:
        requant = Mean() if kind == "mean" else FixedPoint.of([0.21])
        op = AveragePool2d("p", ("image",), "p", requant=requant, **sizes)  # type: ignore[arg-type]
        chain.add(op, "int8")
    zero = 5 if kind == "scaled" else -7
    chain.tensors["p"] = replace(chain.tensors["p"], zero_point=zero)
    return chain.conv("c", 3, 1, dtype="int8").graph()


def separable(seed: int = 0, depth: int = 5) -> Chain:
    """An odd number of channels: their nibbles of one tap end within a byte."""
    chain = Chain((9, 8, depth), seed=seed).conv("a", depth, 3, groups=depth).conv("b", 6, 1)
    chain.conv("c", 6, (3, 2), groups=6, padding=(1, 1, 1, 0), dilation=(2, 1))
    return chain.maximum("m").dense("d", 3)


def residual() -> Chain:
    """A unit of two 3x3 convolutions that keep the image's size, its input added; an odd number of
    channels: pixels begin in the middle of bytes."""
    chain = Chain((10, 7, 1), "uint8").average("pooled", 4, kernel=(1, 1), stride=(1, 1))
    chain.conv("first", 5)
    chain.conv("a", 5, padding=(1, 1, 1, 1)).conv("b", 5, padding=(1, 1, 1, 1))
    return chain.plus("sum", "first").dense("logits", 3)


def padded_unit() -> Chain:
    """A unit that in place is made pixel by pixel: sums of parts of a row."""
    chain, around = Chain((6, 6, 3)).conv("first", 3, 1), (1, 1, 1, 1)
    chain.conv("a", 3, padding=around).conv("b", 3, padding=around)
    return chain.plus("sum", "first").maximum("m").conv("last", 4, dtype="int8")


def cropped(channels: int = 5, wide: int = 5) -> Chain:
    """The same without padding: the middle of its input is added; ``wide`` channels behind it."""
    chain = Chain((12, 9, 1), "uint8").average("pooled", 4, kernel=(1, 1), stride=(1, 1))
    chain.conv("first", channels).middle("middle", 2)
    chain.last = "first"
    chain.conv("a", channels).conv("b", channels)
    chain.tensors["b"] = replace(chain.tensors["b"], zero_point=8)
    return chain.plus("sum", "middle").conv("wide", wide, 2).dense("logits", 3)


def windows(seed: int = 0) -> Chain:
    """One channel; eleven sums, which leave no register for the cursor; odd pixels; strides; pixels
    deep enough to be divided; dilation; parts of the channels; maximums; one window over all."""
    sizes = {"kernel": (1, 1), "stride": (1, 1), "shift": 4}
    chain = Chain((11, 12, 1), "uint8", seed=seed).average("pooled", **sizes)  # type: ignore[arg-type]
    chain.conv("a", 11).conv("b", 5, (2, 3), stride=(1, 2)).conv("c", 24, 3, dilation=(2, 1))
    return chain.maximum("m").conv("d", 14, (2, 1)).dense("logits", 4)


class EvenRowsFirst(Ordinary):
    """Put even rows before odd ones in tensors between, nibbles apart; nothing shares a cell."""

    def plan(self, graph: Graph, hardware: Hardware) -> Plan:
        plan, buffers, begin = super().plan(graph, hardware), [], 0
        for buffer in plan.buffers:
            if buffer.memory == "sram" and len(buffer.shape) == 3:
                rows, columns, depth = buffer.shape
                pitch = depth * buffer.nibbles
                size = columns * pitch + 2 + 2 * (buffer.nibbles > 1)
                places = (*range(0, rows, 2), *range(1, rows, 2))
                cells = tuple(begin + places.index(row) * size for row in range(rows))
                buffer = replace(buffer, map=Rows(cells, (pitch, buffer.nibbles)))
                begin += rows * size + rows * size % 2
            elif buffer.memory == "sram":
                place = buffer.map
                assert isinstance(place, Affine)
                begin += -begin % 4
                buffer = replace(buffer, map=replace(place, base=begin))
                begin += 4 * buffer.shape[0]
            buffers.append(buffer)
        return replace(plan, buffers=tuple(buffers))


Make = Callable[[], Chain | Graph]


def made(make: Make) -> Graph:
    found = make()
    return found.graph() if isinstance(found, Chain) else found


SHAPES: dict[str, Make] = {
    **{
        f"{lanes} lanes": (lambda lanes=lanes: Chain((5, 5, 4)).conv("a", lanes).dense("d", lanes))
        for lanes in range(1, 12)
    },
    "odd depth": lambda: Chain((6, 6, 3)).conv("a", 5).conv("b", 6, 1).dense("d", 10),
    "large kernel": lambda: Chain((8, 8, 2)).conv("a", 7, 5).dense("d", 3),
    "strides": lambda: Chain((9, 8, 4)).conv("a", 6, stride=(2, 3)).dense("d", 4),
    "dilation": lambda: Chain((9, 9, 2)).conv("a", 4, dilation=(2, 1)).dense("d", 4),
    "overlapping pool": lambda: (
        Chain((7, 7, 5)).maximum("a", kernel=(3, 3), stride=(2, 2)).dense("d", 9)
    ),
    "rows in one piece": lambda: Chain((7, 7, 2)).conv("a", 8).dense("d", 2),
    "long column": lambda: Chain((300, 4, 1)).conv("a", 1).dense("d", 2),
    "12 lanes": lambda: Chain((5, 5, 4)).conv("a", 12).dense("d", 2),
    "13 lanes": lambda: Chain((5, 5, 3)).conv("a", 13).dense("d", 2),
    "40 lanes": lambda: Chain((4, 3, 8)).conv("a", 40).dense("d", 2),
    "deep pixels": lambda: Chain((4, 4, 40)).conv("a", 3, 2).dense("d", 2),
    "deep rows": lambda: Chain((5, 5, 14)).conv("a", 6, stride=(2, 1)).dense("d", 2),
    "42 pooled": lambda: (
        Chain((4, 5, 42)).maximum("a", kernel=(2, 2), stride=(2, 1)).conv("b", 2, 1).dense("d", 2)
    ),
    "ends alike": lambda: Chain((5, 5, 8)).conv("a", 8).dense("d", 2),
    "deep window": lambda: Chain((2, 2, 16)).conv("a", 10, 1).conv("b", 11, 2).dense("d", 10),
    "scattered pixels": lambda: Chain((7, 7, 7)).conv("a", 8, 5).conv("b", 11, 2).dense("d", 2),
}

LARGE: dict[str, Make] = {
    "23 deep": lambda: Chain((4, 4, 23)).conv("a", 10, 2).dense("last", 2),
    "deeper pixels": lambda: Chain((2, 3, 140)).conv("a", 4, 1).dense("last", 2),
    "much code": lambda: Chain((3, 3, 81)).conv("a", 11, 1).dense("last", 2),
    "tall kernel": lambda: Chain((42, 1, 9)).conv("a", 2, (40, 1)).dense("last", 2),
    "tall pool": lambda: (
        Chain((41, 2, 1)).maximum("a", kernel=(40, 1), stride=(40, 1)).dense("last", 2)
    ),
    "256 pooled": lambda: (
        Chain((17, 16, 1)).maximum("a", kernel=(16, 16), stride=(16, 16)).dense("last", 2)
    ),
}
"""Offsets, immediate bytes and branches end somewhere; then another instruction, or C."""

PORTABLE: dict[str, Make] = {
    "many bytes": lambda: Chain((5, 5, 3)).conv("a", 17, dtype="uint8").dense("d", 13),
    "padding": lambda: Chain((5, 5, 2)).conv("a", 3, padding=(1, 1, 1, 1)).dense("d", 4),
    "padded maximum": lambda: (
        Chain((5, 5, 2)).maximum("a", kernel=(3, 3), stride=(2, 2), padding=(1,) * 4).dense("d", 4)
    ),
    "bytes": lambda: Chain((5, 5, 2), "uint8").conv("a", 3, dtype="uint8").dense("d", 4),
}
