"""Rows and columns in turn, always the side that costs least."""

from dataclasses import dataclass
from typing import ClassVar

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan
from pipeline.search.moves.pixels import in_place
from pipeline.strategies.base import Strategy


@dataclass(frozen=True)
class Herringbone(Strategy):
    """The paper's herringbone strategy (section 3.4.2), and an exact search beyond it.

    Optimal with square kernels, stride 1 and no padding: peeled where channels grow
    (``Layer.peelable``, claim 2), row-major where they do not (claim 1). Elsewhere ``least`` finds
    the best order of rows and columns from a corner on, which the paper's greedy rule
    (equations 16 and 23) does not. Tensors in one piece go by rows or by columns there.

    Attributes:
        convolve_arriving: the first convolution is done while the image streams in, of which only a
            ring of rows is held.
    """

    name: ClassVar[str] = "herringbone"
    glance_macs: ClassVar[int] = 50_000_000
    convolve_arriving: bool = False

    def plan(self, graph: Graph, hardware: Hardware) -> Plan:
        return in_place(graph, hardware, "herringbone", self.layout, self.convolve_arriving)
