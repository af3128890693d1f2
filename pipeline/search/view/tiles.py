"""A network at the grain of tiles: layers whose tensors lie on a card, and pass through windows."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from math import prod
from types import MappingProxyType

from pipeline.errors import ThimbleError
from pipeline.graph.access import Operand, Window
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d, Dense
from pipeline.graph.operators.lookup import Lookup
from pipeline.graph.operators.pool2d import Pool2d
from pipeline.plan.rates import Rates, work
from pipeline.schedules.bounds import reach
from pipeline.schedules.lower import needed

SWAPS, ELSE = "strategy=swap takes", "use strategy=auto"
Rows = tuple[int, int]
"""From which to which."""


@dataclass(frozen=True)
class Source:
    """An activation that a layer reads.

    Attributes:
        shape: images are (rows, columns, channels).
        windows: of it along rows and columns; None where every output element needs all of it.
    """

    tensor: str
    shape: tuple[int, ...]
    windows: tuple[Window, Window] | None

    @property
    def rows(self) -> int:
        """A vector is one row."""
        return self.shape[0] if len(self.shape) > 1 else 1

    @cached_property
    def row_bytes(self) -> int:
        return prod(self.shape) // self.rows

    def needed(self, low: int, high: int) -> Rows:
        """Return its rows that the target's rows ``low`` to ``high`` are made of; (0, 0): none."""
        if low >= high:
            return 0, 0
        if self.windows is None:
            return 0, self.rows
        start, stop = reach(self.windows[0], low, high - low).clipped(self.rows).ends
        return (start, stop) if start < stop else (0, 0)

    def reads(self, rows: int, columns: int) -> tuple[int, ...]:
        """Count the rows and columns that so many rows and columns of the target read."""
        if self.windows is None or len(self.shape) == 1:
            return self.shape[:-1]
        steps = zip(self.windows, (rows, columns), strict=True)
        return tuple(reach(window, 0, size).size for window, size in steps)


@dataclass(frozen=True)
class TiledLayer:
    """One operator. Elements are bytes.

    Attributes:
        sources, target: the activations it reads, those of which it needs all last, and makes.
        shape: of ``target``: (rows, columns, channels); of a vector (1, 1, channels).
        channelwise: an output channel reads only its own channel of the sources.
        weight: the constant that is swapped in, or ``""``; (channels, …), a row an output channel.
        fixed: the constants that stay on the chip: biases, tables.
        row_bytes: of the weights of one output channel.
        work: multiply–accumulates of one frame; without any, the values it compares or adds; or as
            many as the core makes in the time of its kernel (``timed``).
        slower: how many times as long that takes with weights in flash, which no window has.
    """

    name: str
    sources: tuple[Source, ...]
    target: str
    shape: tuple[int, int, int]
    _: KW_ONLY
    channelwise: bool
    weight: str
    fixed: tuple[str, ...]
    row_bytes: int
    work: float
    slower: float = 1.0

    @property
    def rows(self) -> int:
        return self.shape[0]

    @property
    def channels(self) -> int:
        return self.shape[2]

    @property
    def weight_bytes(self) -> int:
        return self.row_bytes * self.channels if self.weight else 0


def homes(layers: Sequence[TiledLayer]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """List what lies on the card, the feature maps and the weights; and what stays on the chip."""
    maps = dict.fromkeys(s.tensor for layer in layers for s in layer.sources)
    maps |= dict.fromkeys(layer.target for layer in layers)
    weights = dict.fromkeys(layer.weight for layer in layers if layer.weight)
    return (*maps, *weights), tuple(dict.fromkeys(name for layer in layers for name in layer.fixed))


def layers(graph: Graph) -> tuple[TiledLayer, ...]:
    """Return the layers of ``graph``, each after those that it reads.

    Raises:
        ThimbleError: for tensors that are no bytes, or neither images nor vectors, and for several
            inputs or outputs.
    """
    _ = graph.start, graph.end
    return tuple(_layer(op, graph) for op in needed(graph))


def timed(
    layers: Sequence[TiledLayer], us: Mapping[str, float], rates: Rates,
    in_flash: Mapping[str, float] = MappingProxyType({}),
) -> tuple[TiledLayer, ...]:  # fmt: skip
    """Return the same layers; of those that are named in ``us`` the work takes so many
    microseconds, and with weights in flash as many as ``in_flash`` says."""

    def of(layer: TiledLayer) -> TiledLayer:
        if not (own_us := us.get(layer.name)):
            return layer
        slower = max(1.0, in_flash.get(layer.name, 0.0) / own_us)
        return replace(layer, work=own_us / rates.work_us, slower=slower)

    return tuple(map(of, layers))


def staying(layers: Sequence[TiledLayer], weights: Collection[str]) -> tuple[TiledLayer, ...]:
    """Return the same layers, with these weights on the chip."""

    def of(layer: TiledLayer) -> TiledLayer:
        if layer.weight not in weights or not layer.weight:
            return layer
        fixed, work = (layer.weight, *layer.fixed), layer.work * layer.slower
        return replace(layer, weight="", row_bytes=0, fixed=fixed, work=work)

    return tuple(map(of, layers))


def chain(graph: Graph) -> tuple[TiledLayer, ...]:
    """Return those of a network without branches.

    Raises:
        ThimbleError: besides, where it is not a chain of convolutions, pooling, dense layers and
            functions.
    """
    found, before = layers(graph), graph.start
    for layer in found:
        read, op = [source.tensor for source in layer.sources], graph.operator(layer.name)
        if isinstance(op, Conv2d) and op.groups > 1 and not layer.channelwise:
            raise ThimbleError(
                f"{layer.name} is in groups of channels, scheduler=swapnn takes none such; "
                "try strategy.scheduler=best"
            )
        if read != [before] or not isinstance(op, Conv2d | Pool2d | Dense | Lookup):
            raise ThimbleError(
                f"{layer.name}, a {type(op).__name__}, reads {', '.join(read)}: "
                "strategy.scheduler=swapnn takes chains of convolutions, pooling, dense layers and "
                "functions of one tensor; try strategy.scheduler=best"
            )
        before = layer.target
    return found


def _layer(op: Operator, graph: Graph) -> TiledLayer:
    tensors, target = graph.tensors, graph.tensors[op.output].shape
    weight = op.parameters[0] if op.weighted else ""
    for name in (*op.inputs, op.output, *([weight] if weight else [])):
        if tensors[name].dtype.bits != 8:
            raise ThimbleError(f"{name} is {tensors[name].dtype}, {SWAPS} 8 bits: {ELSE}")
    if len(target) == 2:
        raise ThimbleError(f"{op.output} has two axes, {SWAPS} images and vectors: {ELSE}")
    own = op.channel_wise(tensors)
    operands = [o for o in op.reads(tensors) if o.tensor in op.inputs]
    sources = [Source(o.tensor, tensors[o.tensor].shape, _moving(o)) for o in operands]
    sources.sort(key=lambda source: source.windows is None)
    shape = (target[0], target[1], target[2]) if len(target) == 3 else (1, 1, target[0])
    fixed = tuple(name for name in op.parameters if name != weight)
    row_bytes = prod(tensors[weight].shape[1:]) if weight else 0
    return TiledLayer(
        op.name, tuple(sources), op.output, shape, channelwise=own, weight=weight, fixed=fixed,
        row_bytes=row_bytes, work=work(op, graph),
    )  # fmt: skip


def _moving(operand: Operand) -> tuple[Window, Window] | None:
    """Along rows and columns, where rows of the target are made of rows of it; a vector is one."""
    windows = operand.windows[:2]
    moves = all(w.axis == axis and w.divide == 1 for axis, w in enumerate(windows))
    return (windows[0], windows[1]) if len(windows) == 2 and moves else None
