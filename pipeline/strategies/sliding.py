"""Row by row, for windows that slide along time, given the graph of neighbouring ones
(``pipeline.sliding``)."""

from dataclasses import dataclass
from typing import ClassVar

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan
from pipeline.schedules.arriving import Arriving
from pipeline.schedules.draft import Draft
from pipeline.schedules.lower import lay, needed
from pipeline.schedules.sliding import Sliding as Region
from pipeline.strategies.base import Strategy


@dataclass(frozen=True)
class Sliding(Strategy):
    """For any graph. ``objective``: the same plan for each."""

    name: ClassVar[str] = "sliding"

    def plan(self, graph: Graph, hardware: Hardware) -> Plan:
        """
        Raises:
            ThimbleError: for a graph without operators, or with several inputs or outputs, and
                where the image is summed up as it streams in.
        """
        _ = graph.start, graph.end
        arriving = Arriving.of(graph, hardware)
        if arriving.sums:
            raise ThimbleError(
                f"strategy=sliding: {graph.name} sums up its image as it streams in, row over row: "
                "set hardware.streams_input=false, or choose strategy=joint"
            )
        operators = tuple(op for op in needed(graph) if op is not arriving.pool)
        return lay([Region(arriving, operators)], Draft(graph, hardware)).plan(self.name)
