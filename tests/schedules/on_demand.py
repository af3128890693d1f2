"""A network's rows on demand, in one segment, whatever a search would make of it."""

from collections.abc import Sequence

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.hardware import Hardware
from pipeline.schedules.rows import Arrive, RowStep
from pipeline.search.joint.segment import on_demand
from pipeline.search.view.rows import Units


def all_rows(
    graph: Graph, hardware: Hardware, operators: Sequence[Operator], streamed: bool = False
) -> tuple[RowStep | Arrive, ...]:
    units = Units(graph, hardware, operators, streamed)
    order = on_demand(units, 0, [graph.output])
    return tuple(units.units[number].step for number in order)
