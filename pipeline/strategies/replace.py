"""Row-major in place: outputs take the place of inputs that no later output reads."""

from dataclasses import dataclass
from typing import ClassVar

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan
from pipeline.search.moves.pixels import in_place
from pipeline.strategies.base import Strategy


@dataclass(frozen=True)
class Replace(Strategy):
    """The paper's replace strategy (section 3.4.1).

    Attributes:
        convolve_arriving: the first convolution is done while the image streams in, of which only a
            ring of rows is held.
    """

    name: ClassVar[str] = "replace"
    glance_macs: ClassVar[int] = 50_000_000
    convolve_arriving: bool = False

    def plan(self, graph: Graph, hardware: Hardware) -> Plan:
        return in_place(graph, hardware, "replace", self.layout, self.convolve_arriving)
