"""Demands of every generated program on its plan, whichever kernels compute it."""

from math import ceil

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.plan.cost import high_water_nibbles
from pipeline.plan.vocabulary import Plan


def check(graph: Graph, plan: Plan) -> None:
    """
    Raises:
        ThimbleError: for a plan of another graph, of several frames without a card, whose output is
            smaller than bytes, or whose memories are no arena and constants beside it, or on a
            card.
    """
    if plan.graph != graph.name:
        raise ThimbleError(f"the plan is for {plan.graph}, the graph is {graph.name}")
    if plan.frames > 1 and not plan.on_card:
        raise ThimbleError(
            f"generated code computes one frame at a time without a card, not {plan.frames}"
        )
    for output in (graph.tensors[name] for name in graph.outputs):
        if output.dtype.bits < 8:
            raise ThimbleError(
                f"the output {output.name} is {output.dtype}, but generated code returns whole "
                f"bytes: give {graph.producer(output.name).name} an output of 8 bits or more"
            )
    _check_constants(plan)


def arena_memory(plan: Plan) -> str:
    """Name the one memory that activations live in, apart from an input that streams in or lies
    outside, and a card."""
    kinds = {name: memory.kind for name, memory in plan.memory.items()}
    brings = ("stream", "frame")
    given = {name for name in plan.resident if kinds[plan.buffer[name].memory] in brings}
    apart = given | {b.name for b in plan.buffers if kinds[b.memory] == "block"}
    names = {b.memory for b in plan.buffers if b.role != "constant" and b.name not in apart}
    if len(names) != 1 or kinds[min(names)] != "ram":
        raise ThimbleError(
            f"generated code has one arena in RAM, the plan uses {', '.join(sorted(names))}"
        )
    return names.pop()


def arena_bytes(plan: Plan) -> int:
    return ceil(high_water_nibbles(plan, arena_memory(plan), constants=False) / 2)


def _check_constants(plan: Plan) -> None:
    """Above the arena, or in flash."""
    arena, size = arena_memory(plan), arena_bytes(plan)
    for buffer in plan.buffers:
        if buffer.role != "constant" or buffer.name in plan.on_card:
            continue
        first = buffer.extent[0] / 2
        if plan.memory[buffer.memory].kind not in ("ram", "rom"):
            raise ThimbleError(
                f"{buffer.name}: generated code has constants in SRAM or flash, not in "
                f"{buffer.memory}"
            )
        if buffer.memory == arena and first < size:
            raise ThimbleError(
                f"{buffer.name}: generated code keeps constants above the arena, the plan has "
                f"it at byte {first:g} of {arena}, below {size}"
            )
