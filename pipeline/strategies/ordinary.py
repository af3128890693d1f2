"""Whole tensors, one operator after the other, as inference engines do it; alias ``naive``.

The order with the least peak, element-wise operators in place where an input dies, and addresses
that need no more than that peak.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import KEPT, Plan
from pipeline.schedules.arriving import Arriving
from pipeline.schedules.lower import Laid, Region, lay, needed, room, with_room
from pipeline.search.moves.whole import EFFORT, in_order
from pipeline.search.quicker import quickest
from pipeline.strategies.base import ANY, Strategy


@dataclass(frozen=True)
class Ordinary(Strategy):
    """For any graph; ``layout`` is the chains' and means nothing here.

    ``objective``: with ``memory`` kernels that trade flash and scratch for speed are left out; with
    the others they run what they are faster at, as far as both suffice.

    Attributes:
        preserve_input: nothing is written over the input, so that it need not be given anew.
    """

    name: ClassVar[str] = "ordinary"
    glance_macs: ClassVar[int] = ANY
    preserve_input: bool = False

    def plan(self, graph: Graph, hardware: Hardware) -> Plan:
        return self.within(graph, hardware, room(graph, hardware))

    def within(self, graph: Graph, hardware: Hardware, cells: int) -> Plan:
        """As ``plan``, where only ``cells`` nibbles of the arena may go to speed."""
        if graph.output == graph.input or graph.output in graph.constants:
            raise ThimbleError(
                f"{graph.name} has nothing to compute: its output {graph.output} is "
                f"{'its input' if graph.output == graph.input else 'a constant'}"
            )
        arriving = Arriving.of(graph, hardware)
        if self.preserve_input and arriving.streams:
            raise ThimbleError(
                "strategy.preserve_input: on this board the input streams in and is gone "
                "once it is read; set hardware.streams_input=false, or leave preserve_input out"
            )
        operators = [op for op in needed(graph) if op is not arriving.pool]
        order, proved = in_order(graph, hardware, arriving, operators, self.preserve_input)
        regions: list[Region] = [arriving, *order]

        def laid(asked: Mapping[str, str], scratch: bool = True) -> Laid:
            return lay(
                regions,
                graph,
                hardware,
                keep_input=self.preserve_input,
                scratch=scratch,
                effort=EFFORT,
                asked=asked,
            )

        best = with_room(lambda scratch: laid({}, scratch))
        if self.objective != "memory" and best.draft.scratch:
            best = quickest(graph, hardware, operators, laid, cells, best)
        kept = ((KEPT, True),) if self.preserve_input else ()
        return best.plan(self.name, (*proved, *kept))
