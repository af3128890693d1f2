"""Networks that are made row by row, their rows in blocks."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Compute, Plan
from pipeline.plan.well_formed import statements
from pipeline.schedules import rows
from pipeline.schedules.lower import lay, needed
from pipeline.search.layouts import in_blocks
from tests.schedules.on_demand import all_rows


def by_rows(graph: Graph, hardware: Hardware, pixels: Mapping[str, int] | None = None) -> Plan:
    """Rows on demand; ``pixels``: of a block, by the tensors whose rows lie in blocks; if not
    said, of those that are faster so."""
    operators, whole = needed(graph), frozenset([graph.output])
    order = all_rows(graph, hardware, operators)
    if pixels is None:
        pixels = in_blocks(graph, operators, hardware, whole)
    regions = [rows.Resident(graph.input), rows.Rows(order, whole, pixels)]
    return lay(regions, graph, hardware).plan("rows")


def kernels(plan: Plan) -> dict[str, str]:
    """By operator."""
    return {s.op: s.kernel for s in statements(plan) if isinstance(s, Compute)}
