"""Refuses a plan that the generator has no C for, and says what to use instead."""

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import lacks
from pipeline.plan.vocabulary import Plan
from pipeline.search.moves.whole import one_by_one


def check(plan: Plan, graph: Graph, hardware: Hardware) -> None:
    """
    Raises:
        ThimbleError: there is no C for a step of ``plan``, or sums of ``graph`` pass 32 bits.
    """
    for op in graph.operators:
        if why := op.overflow(graph.tensors, graph.constants):
            raise ThimbleError(
                f"{op.name} ({type(op).__name__}): {why}: use fewer inputs or smaller weights"
            )
    if why := lacks(plan, graph, hardware):
        whole = not lacks(one_by_one(graph, hardware), graph, hardware)
        instead = "strategy=ordinary" if whole else "quantize=int8, or another network"
        raise ThimbleError(
            f"strategy={plan.strategy.partition('/')[0]} has no C on {hardware.name} for {why}: "
            f"use {instead}"
        )
