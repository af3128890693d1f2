"""Rows first, then columns: one change of direction, where it saves most."""

from dataclasses import dataclass
from typing import ClassVar

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan
from pipeline.search.moves.pixels import in_place
from pipeline.strategies.base import Strategy


@dataclass(frozen=True)
class SingleTranspose(Strategy):
    """The paper's single transpose strategy (section 3.4.3).

    Outside the restricted case (``Layer.peelable``) it is row-major where that fits what others
    need, or where tensors are in one piece.

    Attributes:
        convolve_arriving: the first convolution is done while the image streams in, of which only a
            ring of rows is held.
    """

    name: ClassVar[str] = "single_transpose"
    glance_macs: ClassVar[int] = 50_000_000
    convolve_arriving: bool = False

    def plan(self, graph: Graph, hardware: Hardware) -> Plan:
        return in_place(graph, hardware, "single_transpose", self.layout, self.convolve_arriving)
