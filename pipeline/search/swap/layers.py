"""A network as a chain of layers whose tensors lie on a card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from pipeline.errors import ThimbleError
from pipeline.graph.access import Operand, Window
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.dense import Dense
from pipeline.graph.operators.pool2d import Pool2d
from pipeline.plan.rates import work
from pipeline.schedules.bounds import reach
from pipeline.schedules.lower import Notes, needed
from pipeline.schedules.swapped import Swapped


@dataclass(frozen=True)
class TiledLayer:
    """One operator of a chain. Elements are bytes.

    Attributes:
        source, target: the activations it reads and makes.
        shape: of ``target``: (rows, columns, channels); of a dense layer (1, 1, channels).
        source_shape: of ``source``; images are (rows, columns, channels).
        windows: of the source along rows and columns; None for a dense layer, which reads all.
        channelwise: an output channel reads only its own input channel (depthwise, pooling).
        weight: the constant that is swapped in, or ``""``; (channels, …), a row an output channel.
        bias: the constant read when a sum is complete, or ``""``.
        row_bytes: of the weights of one output channel.
        work: multiply–accumulates of one frame; of pooling, the values it compares or adds.
    """

    name: str
    source: str
    target: str
    shape: tuple[int, int, int]
    source_shape: tuple[int, ...]
    windows: tuple[Window, Window] | None
    channelwise: bool
    weight: str
    bias: str
    row_bytes: int
    work: int

    @property
    def channels(self) -> int:
        return self.shape[2]

    @property
    def weight_bytes(self) -> int:
        return self.row_bytes * self.channels if self.weight else 0

    @property
    def source_bytes(self) -> int:
        return prod(self.source_shape)

    @property
    def target_bytes(self) -> int:
        return prod(self.shape)

    def reads(self, rows: int, columns: int) -> tuple[int, int]:
        """Rows and columns of the source that so many rows and columns of the target read."""
        assert self.windows is not None
        high, wide = self.windows
        return reach(high, 0, rows).size, reach(wide, 0, columns).size


@dataclass(frozen=True)
class Proposal:
    """
    Attributes:
        bytes: of memory that the region's windows lie in.
        notes: what a plan says about it.
    """

    region: Swapped
    bytes: int
    notes: Notes


def homes(layers: Sequence[TiledLayer]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What lies on the card, the feature maps and the weights; what stays on the chip: biases."""
    maps = (layers[0].source, *(layer.target for layer in layers))
    weights = dict.fromkeys(layer.weight for layer in layers if layer.weight)
    return (*maps, *weights), tuple(dict.fromkeys(layer.bias for layer in layers if layer.bias))


def layers(graph: Graph) -> tuple[TiledLayer, ...]:
    """The layers of ``graph`` in order.

    Raises:
        ThimbleError: where it is not a chain of convolutions, pooling and dense layers in bytes.
    """
    result, before = [], graph.input
    for op in needed(graph):
        if op.inputs != (before,):
            raise ThimbleError(
                f"{op.name} reads {', '.join(op.inputs)}: strategy swap takes chains of layers; "
                "try strategy=auto"
            )
        result.append(_layer(op, graph))
        before = op.output
    if not result:
        raise ThimbleError(f"{graph.name} has nothing to compute")
    return tuple(result)


def _layer(op: Operator, graph: Graph) -> TiledLayer:
    tensors = graph.tensors
    for name in (op.inputs[0], op.output, *op.parameters[:1]):
        if tensors[name].dtype.bits != 8:
            raise ThimbleError(f"{name} is {tensors[name].dtype}: strategy swap takes 8 bits")
    target, source = tensors[op.output].shape, tensors[op.inputs[0]].shape
    weight, bias = (*op.parameters, "", "")[:2]
    row_bytes = prod(tensors[weight].shape[1:]) if weight else 0
    effort = work(op, graph)
    if isinstance(op, Dense):
        shape = (1, 1, target[0])
        return TiledLayer(op.name, op.inputs[0], op.output, shape, source, None, False,
                     weight, bias, row_bytes, effort)  # fmt: skip
    if not isinstance(op, Conv2d | Pool2d):
        kind = type(op).__name__
        raise ThimbleError(
            f"{op.name}: strategy swap knows no {kind}; it takes convolutions, pooling and dense "
            "layers; try strategy=auto"
        )
    (image, *_) = op.terms(tensors)[0].operands
    alone = isinstance(op, Pool2d) or (op.groups == source[2] == target[2] and op.groups > 1)
    if isinstance(op, Conv2d) and op.groups > 1 and not alone:
        raise ThimbleError(f"{op.name}: strategy swap takes no convolution in {op.groups} groups")
    return TiledLayer(op.name, op.inputs[0], op.output, (target[0], target[1], target[2]), source,
                 _moving(image), alone, weight, bias, row_bytes, effort)  # fmt: skip


def _moving(image: Operand) -> tuple[Window, Window]:
    return image.windows[0], image.windows[1]
