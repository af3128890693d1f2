"""Layers that are made row by row, from rows in blocks into rows in blocks."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Compute, Plan
from pipeline.plan.well_formed import statements
from pipeline.schedules import rows
from pipeline.schedules.lower import lay, needed
from pipeline.search.rows import on_demand


def by_rows(graph: Graph, hardware: Hardware, pixels: Mapping[str, int]) -> Plan:
    """Rows on demand; ``pixels``: of a block, by the tensors whose rows lie in blocks."""
    order = on_demand(graph, needed(graph), [graph.input], graph.output)
    regions = [rows.Resident(graph.input), rows.Rows(order, frozenset([graph.output]), pixels)]
    return lay(regions, graph, hardware).plan("rows")


def kernels(plan: Plan) -> dict[str, str]:
    """By operator."""
    return {s.op: s.kernel for s in statements(plan) if isinstance(s, Compute)}
