"""Strategies in place: one operator after the other, each overwriting what it has used up, and
blocks with branches together. What follows the last layer, such as a softmax, lies beside."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import ClassVar

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.hardware import Hardware
from pipeline.placement.blocks import WORD, round_up
from pipeline.plan.vocabulary import Plan
from pipeline.schedules.arriving import Arriving
from pipeline.schedules.arriving_rows import ArrivingRows
from pipeline.schedules.lower import Region, laid_at, needed, room
from pipeline.schedules.traversed import Traversed
from pipeline.schedules.whole import Whole
from pipeline.search.chains import contiguous, slots
from pipeline.search.chains.address_maps import at
from pipeline.search.chains.arrangement import Arrangement, Traversal
from pipeline.search.chains.choose import chosen
from pipeline.search.chains.cycles import Cycles
from pipeline.search.chains.flow import Flow
from pipeline.search.chains.free_cells import Cells
from pipeline.search.chains.items import Item
from pipeline.search.chains.layer import Layer
from pipeline.search.chains.liveness import peak_nibbles
from pipeline.search.chains.traversals import Peels, ranks, rows
from pipeline.search.chains.two_ends import needed_nibbles
from pipeline.strategies.base import Strategy

LAYERS = "convolutions, pooling and dense layers"


@dataclass(frozen=True)
class ChainStrategy(Strategy):
    """Plans a network layer by layer; what differs is the order of a convolution's outputs.

    Attributes:
        convolve_arriving: the first convolution is done while the image streams in, of which only a
            ring of rows is held.
    """

    convolve_arriving: bool = False

    glance_macs: ClassVar[int] = 50_000_000

    @abstractmethod
    def traversal(self, layer: Layer, mirrored: bool = False) -> Peels:
        """The order in which the pixels of ``layer``'s output are computed.

        ``mirrored``: a contiguous layout turns the layer's images by 180 degrees.
        """

    def orders(self, flow: Flow, number: int, tight: bool) -> Iterator[Item]:
        """Those that operator ``number`` may take in layout ``slots``, the fastest first; slow ones
        where memory is ``tight`` only."""
        layer = Layer(flow.operators[number], flow.tensors)
        if layer.op.slides:
            yield Item.of(flow, number, self.traversal(layer))
        else:
            yield Item.of(flow, number, rows(*layer.outputs[:2]))

    def plan(self, graph: Graph, hardware: Hardware) -> Plan:
        if graph.output == graph.input or graph.output in graph.constants:
            raise ThimbleError(f"{graph.name} has nothing to compute: try another network")
        arriving = self._arriving(graph, hardware)
        operators, after = self._parts(graph, arriving.operators)
        besides, nibbles = arriving.beside, sum(arriving.beside.values())
        if self.layout == "slots":
            end = operators[-1].output if operators else arriving.start.name
            flow = Flow(tuple(operators), graph.tensors, arriving.start.name, end)
            cycles = Cycles(graph, hardware)
            in_order = not isinstance(arriving, ArrivingRows) or arriving.start.dtype.bits > 4
            best = slots.arrange(flow, nibbles, chosen(flow, self.orders, cycles), in_order)
            if best.nibbles > room(graph, hardware):
                items = chosen(flow, self.orders, cycles, tight=True)
                if max(item.peak for item in items) < best.nibbles:
                    ways = best, slots.arrange(flow, nibbles, items, in_order)
                    best = min(ways, key=lambda found: found.nibbles)
        else:
            layers = [Layer(op, graph.tensors) for op in operators]
            found = (contiguous.arrange(arriving.start, nibbles, way) for way in self.ways(layers))
            best = min(found, key=lambda each: each.nibbles)
        if isinstance(arriving, ArrivingRows):
            arriving = replace(arriving, place=best.buffers[0])
        regions: list[Region] = [arriving, Traversed(best.buffers, best.runs), *map(Whole, after)]
        places, nibbles = _beside(best, after, graph)
        ends = accumulate(besides.values(), initial=best.beside)
        places |= dict(zip(besides, ends, strict=False))
        laid = laid_at(regions, graph, hardware, nibbles, places)
        return laid.plan(f"{self.name}/{self.layout}")

    def _arriving(self, graph: Graph, hardware: Hardware) -> Arriving | ArrivingRows:
        given = Arriving.of(graph, hardware)
        if not self.convolve_arriving:
            return given
        found = ArrivingRows.of(given, graph)
        if found is None:
            raise ThimbleError(
                "strategy.convolve_arriving: the input has to stream in "
                "(hardware.streams_input=true), and a convolution without rows of padding to read "
                f"it, or what an average pool makes of it; {graph.name} on {hardware.name} has no "
                "such one: leave strategy.convolve_arriving out"
            )
        return found

    def ways(self, layers: Sequence[Layer]) -> list[list[Traversal]]:
        """Ways through the whole chain: the first with the smallest arena is planned."""
        turned = contiguous.mirrored(len(layers))
        return [
            [
                (layer, self.traversal(layer, turn))
                for layer, turn in zip(layers, turned, strict=True)
            ]
        ]

    def peak(self, layer: Layer, peels: Peels, mirrored: bool = False) -> int:
        """Nibbles that ``layer`` needs in this strategy's layout when traversed so."""
        if self.layout == "contiguous":
            return needed_nibbles(layer, peels, mirrored)
        return peak_nibbles(layer, ranks(*layer.outputs[:2], peels))

    def _parts(
        self, graph: Graph, arrived: Sequence[Operator]
    ) -> tuple[Sequence[Operator], Sequence[Operator]]:
        """What runs in place, and the operators behind the last layer, such as a softmax of a few
        values, each of which reads what the one before it made.

        Raises:
            ThimbleError: for a layout of chains where an operator does not read that.
        """
        operators = [op for op in needed(graph) if op not in arrived]
        behind = len(operators)
        while behind and not operators[behind - 1].slides:
            op, before = operators[behind - 1], operators[behind - 2 : behind - 1]
            if not before or set(op.inputs) != {before[0].output}:
                break
            behind -= 1
        if self.layout == "contiguous":
            self._chain(graph, operators[:behind])
        self._images(graph, operators[:behind])
        return operators[:behind], operators[behind:]

    def _images(self, graph: Graph, operators: Sequence[Operator]) -> None:
        for op in operators:
            for name in (*op.inputs, op.output):
                if len(graph.tensors[name].shape) not in (1, 3):
                    raise ThimbleError(
                        f"strategy {self.name} cannot plan {op.name} ({type(op).__name__}): it "
                        f"plans vectors and images of pixels, and {name} is "
                        f"{graph.tensors[name].shape}; try strategy=joint"
                    )

    def _chain(self, graph: Graph, operators: Sequence[Operator]) -> None:
        tensor = operators[0].inputs[0] if operators else graph.input
        for op in operators:
            if not op.slides or set(op.inputs) != {tensor}:
                raise ThimbleError(
                    f"strategy {self.name} cannot plan {op.name} ({type(op).__name__}) with "
                    f"strategy.layout=contiguous, which is for chains of {LAYERS}: "
                    "try strategy.layout=slots"
                )
            tensor = op.output


def _beside(
    chain: Arrangement, after: Sequence[Operator], graph: Graph
) -> tuple[dict[str, int], int]:
    """Where what ``after`` makes of the chain's output lies, each apart from what it is made of,
    and the nibbles of all."""
    places, nibbles, before = dict[str, int](), chain.nibbles, chain.buffers[-1]
    for op in after:
        tensor = graph.tensors[op.output]
        cells = Cells(nibbles)
        cells.free[before.cells(before.box).reshape(-1)] = False
        size = tensor.size * max(1, tensor.dtype.bits // 4)
        place = cells.run(size, WORD)
        places[tensor.name] = place = round_up(nibbles, WORD) if place is None else place
        nibbles = max(nibbles, place + size)
        before = at(tensor, place)
    return places, nibbles
