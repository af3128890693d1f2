"""Which generator writes the C for which core. The one place that knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pipeline.codegen.cortex_m.generate import generate as cortex_m
from pipeline.codegen.int4.generate import generate as nibbles
from pipeline.codegen.int8.generate import generate as affine
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan import matches
from pipeline.plan.fit import roomy
from pipeline.plan.vocabulary import Plan

Generator = Callable[[Graph, Plan, Hardware, Mapping[str, str]], dict[str, str]]

GENERATORS: dict[str, Generator] = {"avr": nibbles, "cortex_m": cortex_m, "host": affine}
"""By ``hardware.core``. The host's compiler takes the code of any of them."""


def generate(
    graph: Graph, plan: Plan, hardware: Hardware, provenance: Mapping[str, str]
) -> dict[str, str]:
    """Text by file name, self-contained, and a function of the arguments alone.

    The plan has to be proved (``plan/proof.py``): C does whatever a wrong one says.

    Raises:
        ThimbleError: for a plan of another graph, a core without a generator, and for a plan, an
            operator or a type that its generator cannot express.
    """
    matches.check(roomy(plan), graph)  # what does not fit, the linker says
    if hardware.core not in GENERATORS:
        raise ThimbleError(
            f"no code generator for core {hardware.core} ({hardware.name}); have "
            f"{', '.join(GENERATORS)}"
        )
    return GENERATORS[hardware.core](graph, plan, hardware, provenance)
