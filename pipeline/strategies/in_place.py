"""The paper's strategies (Gural and Murmann, ICML 2019): pixels in place, each output over inputs
that no later output reads. They differ in the order of a convolution's outputs."""

from dataclasses import dataclass
from typing import ClassVar

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan
from pipeline.search.moves.pixels import Form, in_place
from pipeline.strategies.base import Strategy


@dataclass(frozen=True)
class InPlace(Strategy):
    """
    Attributes:
        name: which order.
        convolve_arriving: the first convolution is done while the image streams in, of which only a
            ring of rows is held.
    """

    name: ClassVar[Form]
    quick_plan_macs: ClassVar[int] = 50_000_000
    convolve_arriving: bool = False

    def plan(self, graph: Graph, hardware: Hardware) -> Plan:
        return in_place(graph, hardware, self.name, self.layout, self.convolve_arriving)


class Replace(InPlace):
    """Row-major (section 3.4.1)."""

    name = "replace"


class SingleTranspose(InPlace):
    """Rows first, then columns: one change of direction, where it saves most (section 3.4.3).

    Outside the restricted case (``Layer.peelable``) it is row-major where that fits what others
    need, or where tensors are in one piece.
    """

    name = "single_transpose"


class Herringbone(InPlace):
    """Rows and columns in turn, always the side that costs least (section 3.4.2), and an exact
    search beyond that.

    Optimal with square kernels, stride 1 and no padding: peeled where channels grow
    (``Layer.peelable``, claim 2), row-major where they do not (claim 1). Elsewhere ``least`` finds
    the best order of rows and columns from a corner on, which the paper's greedy rule
    (equations 16 and 23) does not. Tensors in one piece go by rows or by columns there.
    """

    name = "herringbone"
