"""Strategies for chains: one operator after the other, each overwriting what it has used up."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan
from pipeline.schedules.arriving import Arriving
from pipeline.schedules.lower import Region, laid_at
from pipeline.schedules.traversed import Traversed
from pipeline.search.chains import contiguous, slots
from pipeline.search.chains.arrangement import Traversal
from pipeline.search.chains.layer import Layer
from pipeline.search.chains.liveness import peak_nibbles
from pipeline.search.chains.traversals import Peels, ranks
from pipeline.search.chains.two_ends import needed_nibbles
from pipeline.strategies.base import Strategy

LAYERS = "convolutions, pooling and dense layers"


@dataclass(frozen=True)
class ChainStrategy(Strategy):
    """Plans a chain layer by layer; what differs is the order of a convolution's outputs."""

    @abstractmethod
    def traversal(self, layer: Layer, mirrored: bool = False) -> Peels:
        """The order in which the pixels of ``layer``'s output are computed.

        ``mirrored``: a contiguous layout turns the layer's images by 180 degrees.
        """

    def plan(self, graph: Graph, hardware: Hardware) -> Plan:
        self._check(graph)
        arriving = Arriving.of(graph, hardware)
        operators = graph.operators[1:] if arriving.pool else graph.operators
        layers = [Layer(op, graph.tensors) for op in operators]
        arrange = slots.arrange if self.layout == "slots" else contiguous.arrange
        ways = (arrange(arriving.start, arriving.sum_nibbles, way) for way in self.ways(layers))
        best = min(ways, key=lambda found: found.nibbles)
        regions: list[Region] = [arriving, Traversed(best.buffers, best.runs)]
        at = {f"{arriving.start.name}.sums": best.beside}
        laid = laid_at(regions, graph, hardware, best.nibbles, at)
        return laid.plan(f"{self.name}/{self.layout}")

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

    def _check(self, graph: Graph) -> None:
        tensor = graph.input
        for op in graph.operators:
            if not op.slides:
                raise ThimbleError(
                    f"strategy {self.name} cannot plan {op.name} ({type(op).__name__}): "
                    f"it plans chains of {LAYERS}"
                )
            if op.inputs != (tensor,):
                raise ThimbleError(
                    f"strategy {self.name} cannot plan {op.name} ({type(op).__name__}): it reads "
                    f"{', '.join(op.inputs)} where a chain goes on with {tensor}, "
                    f"and only chains of {LAYERS} are planned"
                )
            tensor = op.output
        if tensor != graph.output or not graph.operators:
            raise ThimbleError(
                f"strategy {self.name} plans chains that end in the output, "
                f"but {graph.name} ends in {tensor} and its output is {graph.output}"
            )
