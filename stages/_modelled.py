"""How a plan runs each operator, and how long that takes by the kernels' models."""

from __future__ import annotations

from math import inf
from typing import Any

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import cycles_by_operator
from pipeline.kernels.choose import declares
from pipeline.plan.forms import forms
from pipeline.plan.vocabulary import Plan


def formed(plan: Plan, graph: Graph, hardware: Hardware) -> list[dict[str, Any]]:
    """How the plan runs each operator; its ``modelled_cycles`` where kernels' models are of the
    core and no card is used."""
    known = declares(hardware) and not plan.on_card
    cycles = cycles_by_operator(plan, graph, hardware) if known else {}
    rows = []
    for name, form in forms(plan).items():
        found = cycles.get(name, inf)
        rows.append(form.content() | ({"modelled_cycles": round(found)} if found < inf else {}))
    return rows
