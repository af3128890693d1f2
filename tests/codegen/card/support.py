"""Plans that swap, as C with a card, compiled natively and run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pipeline.codegen import generate
from pipeline.codegen.checks import arena_bytes
from pipeline.graph.graph import Graph
from pipeline.plan.vocabulary import Plan
from pipeline.strategies.swap import Swap
from tests.codegen.int8.support import Native
from tests.strategies.swap.nets import board


def planned(graph: Graph, sram_bytes: int, **keys: object) -> Plan:
    """In so much, or in as much as it takes."""
    plan = Swap(**keys).plan(graph, board(sram_bytes))  # type: ignore[arg-type]
    memories = [
        replace(m, bytes=max(m.bytes, arena_bytes(plan))) if m.name == "sram" else m
        for m in plan.memories
    ]
    return replace(plan, memories=tuple(memories))


def sources(graph: Graph, plan: Plan) -> dict[str, str]:
    return generate(graph, plan, board(arena_bytes(plan)), {})


def swapped(folder: Path, graph: Graph, plan: Plan) -> Native:
    return Native(folder, graph, plan, files=sources(graph, plan))
