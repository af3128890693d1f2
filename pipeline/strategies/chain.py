"""Strategies for chains: one operator after the other, each overwriting what it has used up. What
follows the last layer, such as a softmax, lies beside."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.hardware import Hardware
from pipeline.placement.blocks import WORD, round_up
from pipeline.plan.vocabulary import Plan
from pipeline.schedules.arriving import Arriving
from pipeline.schedules.arriving_rows import ArrivingRows
from pipeline.schedules.lower import Region, laid_at
from pipeline.schedules.traversed import Traversed
from pipeline.schedules.whole import Whole
from pipeline.search.chains import contiguous, slots
from pipeline.search.chains.address_maps import at
from pipeline.search.chains.arrangement import Arrangement, Traversal
from pipeline.search.chains.free_cells import Cells
from pipeline.search.chains.layer import Layer
from pipeline.search.chains.liveness import peak_nibbles
from pipeline.search.chains.traversals import Peels, ranks
from pipeline.search.chains.two_ends import needed_nibbles
from pipeline.strategies.base import Strategy

LAYERS = "convolutions, pooling and dense layers"


@dataclass(frozen=True)
class ChainStrategy(Strategy):
    """Plans a chain layer by layer; what differs is the order of a convolution's outputs.

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

    def plan(self, graph: Graph, hardware: Hardware) -> Plan:
        chain = self._chain(graph)
        after = graph.operators[len(chain) :]
        arriving = self._arriving(graph, hardware)
        layers = [Layer(op, graph.tensors) for op in chain[len(arriving.operators) :]]
        arrange = slots.arrange if self.layout == "slots" else contiguous.arrange
        name, nibbles = arriving.beside
        ways = (arrange(arriving.start, nibbles, way) for way in self.ways(layers))
        best = min(ways, key=lambda found: found.nibbles)
        regions: list[Region] = [arriving, Traversed(best.buffers, best.runs), *map(Whole, after)]
        places, nibbles = _beside(best, after, graph)
        laid = laid_at(regions, graph, hardware, nibbles, {name: best.beside, **places})
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
                f"it, pooled 1x1 at most; {graph.name} on {hardware.name} has no such one"
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

    def _chain(self, graph: Graph) -> Sequence[Operator]:
        """All operators but those behind the last layer, such as a softmax of a few values.

        Raises:
            ThimbleError: where one of them does not read what the one before it made.
        """
        tensor, last = graph.input, 0
        for number, op in enumerate(graph.operators, 1):
            last = number if op.slides else last
        for op in graph.operators[:last]:
            if not op.slides:
                raise ThimbleError(
                    f"strategy {self.name} cannot plan {op.name} ({type(op).__name__}): "
                    f"it plans chains of {LAYERS}"
                )
        for op in graph.operators:
            if set(op.inputs) != {tensor}:
                raise ThimbleError(
                    f"strategy {self.name} cannot plan {op.name} ({type(op).__name__}): it reads "
                    f"{', '.join(op.inputs)} where a chain goes on with {tensor}, "
                    f"and only chains of {LAYERS} are planned"
                )
            tensor = op.output
        if tensor != graph.output or not last:
            raise ThimbleError(
                f"strategy {self.name} plans chains that end in the output, "
                f"but {graph.name} ends in {tensor} and its output is {graph.output}"
            )
        return graph.operators[:last]


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
