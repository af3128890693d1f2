"""From a graph and its plan to C for any core. Only the plan decides orders and addresses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil, prod

from pipeline.codegen.int8 import expressions
from pipeline.codegen.int8.job import Job, arena_view
from pipeline.codegen.int8.operators import writers
from pipeline.codegen.int8.program import Program
from pipeline.codegen.int8.values import whole
from pipeline.codegen.int8.views import View
from pipeline.codegen.int8.walker import emit
from pipeline.codegen.render import render, static_source
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.cost import high_water_nibbles
from pipeline.plan.vocabulary import Buffer, Compute, Finish, Loop, Move, Plan, Step


def generate(
    graph: Graph,
    plan: Plan,
    hardware: Hardware,
    provenance: Mapping[str, str],
    fast: Mapping[str, Callable[[Job], None]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """``model.h``, ``model.c`` and ``nn_int8.h``: self-contained, a function of the arguments.

    Args:
        provenance: what the code was made of, as (name, hash) for a comment.
        fast: kernels of a core's own, by name: each writes a step's call.
        headers: what those include, text by file name.

    Raises:
        ThimbleError: for a plan, an operator or a type that this code cannot express.
    """
    _check(graph, plan)
    arena = _arena_memory(plan)
    arena_bytes = ceil(high_water_nibbles(plan, arena, constants=False) / 2)
    program = Program(graph, plan, hardware, {**writers(), **(fast or {})})
    steps = next((track.steps for track in plan.tracks if track.steps), ())
    image, result = (
        _end(program, _resident_input(graph, plan)),
        _end(program, plan.buffer[plan.output]),
    )
    emit(program, steps)
    statements = [line() for line in program.lines]
    kernels = [kernel.code() for kernel in program.kernels.values()]
    weights_in_ram = sum(
        ceil(prod(buffer.shape) * buffer.nibbles / 2)
        for buffer in plan.buffers
        if buffer.role == "constant" and plan.memory[buffer.memory].kind == "ram"
    )
    source = render(
        "int8/model.c.j2",
        name=graph.name,
        shared=[part.code() for part in program.tables if part.code()],
        tables=list(program.constants.tables.values()),
        kernels=kernels,
        statements=statements,
        headers=sorted(headers or {}),
        words=hardware.core != "avr",
        input=image,
        output=result,
        total=expressions.total,
    )
    header = render(
        "int8/model.h.j2",
        name=graph.name,
        provenance=sorted(provenance.items()),
        input=graph.tensors[graph.input],
        output=graph.tensors[graph.output],
        kept=_input_kept(graph, plan, steps),
        hardware=hardware,
        arena_bytes=arena_bytes,
        ram_bytes=next((m.bytes for m in hardware.memories if m.name == arena), 0),
        weight_bytes=sum(ceil(graph.tensors[name].bytes) for name in graph.constants),
        weights_in_ram=weights_in_ram,
        macs=graph.macs,
    )
    files = {"model.h": header, "model.c": source}
    shared = {"nn_int8.h": static_source("int8/nn_int8.h")}
    return files | shared | dict(headers or {})


def _check(graph: Graph, plan: Plan) -> None:
    if plan.graph != graph.name:
        raise ThimbleError(f"the plan is for {plan.graph}, the graph is {graph.name}")
    if plan.frames > 1:
        raise ThimbleError(f"code for this core computes one frame at a time, not {plan.frames}")
    if sum(bool(track.steps) for track in plan.tracks) > 1:
        raise ThimbleError("code for this core runs one track of steps")


def _arena_memory(plan: Plan) -> str:
    """The one memory that activations live in."""
    memories = {buffer.memory for buffer in plan.buffers if buffer.role != "constant"}
    if len(memories) != 1 or plan.memory[min(memories)].kind != "ram":
        raise ThimbleError(
            f"code for this core has one arena in RAM, the plan uses {', '.join(sorted(memories))}"
        )
    return memories.pop()


def _resident_input(graph: Graph, plan: Plan) -> Buffer:
    found = [plan.buffer[n] for n in plan.resident if plan.buffer[n].tensor == graph.input]
    if len(found) != 1:
        raise ThimbleError(f"code for this core takes {graph.input} into one place")
    return found[0]


def _end(program: Program, buffer: Buffer) -> View:
    """The input or the output: in one piece, because a caller fills or reads it.

    Raises:
        ThimbleError: when it is torn apart, or lies where its elements may not.
    """
    box = [whole(extent) for extent in buffer.shape]
    found = arena_view(program, "end", buffer, box)
    plain = found.lookup is None and all(
        extent == 1 or (stride == found.bytes * prod(buffer.shape[axis + 1 :]) and not ring)
        for axis, (extent, stride, ring) in enumerate(
            zip(buffer.shape, found.strides, found.rings, strict=True)
        )
    )
    if not plain or found.offset.const % found.bytes:
        raise ThimbleError(
            f"{buffer.tensor}: code for this core takes and gives tensors in one piece, at an "
            "address that is a multiple of an element"
        )
    return found


def _input_kept(graph: Graph, plan: Plan, steps: tuple[Step, ...]) -> bool:
    """Whether no step writes to where the input lies."""
    image = _resident_input(graph, plan)
    return not any(plan.buffer[name].meets(image) for name in _written(steps))


def _written(steps: tuple[Step, ...]) -> set[str]:
    names: set[str] = set()
    for step in steps:
        match step:
            case Loop(body=body):
                names |= _written(body)
            case Compute(out=out, scratch=scratch):
                names |= {out.buffer, *scratch}
            case Finish(out=out):
                names.add(out.buffer)
            case Move(dst=dst):
                names.add(dst.buffer)
            case _:
                acc = getattr(step, "acc", None)
                names |= {acc.buffer} if acc is not None else set()
    return names
