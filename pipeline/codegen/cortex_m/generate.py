"""C for a Cortex-M: fast kernels where the core and the step allow, portable ones otherwise."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.codegen import int8
from pipeline.codegen.cortex_m.operators import FAST
from pipeline.codegen.render import static_source
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan
from pipeline.scratch import has_dsp

HEADER = "nn_dsp.h"


def generate(
    graph: Graph, plan: Plan, hardware: Hardware, provenance: Mapping[str, str]
) -> dict[str, str]:
    """``model.h``, ``model.c`` and the headers it includes; see ``int8.generate``."""
    if not has_dsp(hardware):
        return int8.generate(graph, plan, hardware, provenance)
    headers = {HEADER: static_source(f"cortex_m/{HEADER}")}
    return int8.generate(graph, plan, hardware, provenance, FAST, headers)
