"""C for a Cortex-M: fast kernels where the core has the instructions, and portable ones."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.codegen import int8
from pipeline.codegen.cortex_m.operators import WRITERS
from pipeline.codegen.render import static_source
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels.cortex_m import has_dsp
from pipeline.plan.vocabulary import Plan

HEADER = "nn_dsp.h"


def generate(
    graph: Graph, plan: Plan, hardware: Hardware, provenance: Mapping[str, str]
) -> dict[str, str]:
    """``model.h``, ``model.c`` and the headers it includes; see ``int8.generate``."""
    if not has_dsp(hardware):
        return int8.generate(graph, plan, hardware, provenance)
    headers = {HEADER: static_source(f"cortex_m/{HEADER}")}
    return int8.generate(graph, plan, hardware, provenance, WRITERS, headers)
