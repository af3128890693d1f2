"""From a graph and its plan to C. Only the plan decides orders and addresses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import ceil

import numpy as np

from pipeline.codegen.int4 import operators, parameters
from pipeline.codegen.int4.operators import feed, move
from pipeline.codegen.int4.program import Program, c_bits
from pipeline.codegen.int4.views import SCATTERED, as_pixels
from pipeline.codegen.int4.window import add_step, assembled, code
from pipeline.codegen.render import render, static_source
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.cost import high_water_nibbles
from pipeline.plan.unrolled import Env, walk
from pipeline.plan.vocabulary import Compute, Move, Plan, Step

MAX_STATEMENTS = 2000


def generate(
    graph: Graph, plan: Plan, hardware: Hardware, provenance: Mapping[str, str]
) -> dict[str, str]:
    """``model.h``, ``model.c`` and ``nn_cells.h``: self-contained, and a function of the arguments.

    Beside them ``steps.json``, which says what the calls of nn_invoke are part of, and, where the
    parameters are sent over the line, ``parameters.hex``.

    Args:
        provenance: what the code was made of, as (name, hash) for a comment.

    Raises:
        ThimbleError: for a plan, an operator or a type that generated code cannot express.
    """
    _check(graph, plan)
    program = Program(graph, plan, hardware)
    events = [(event.step, event.env) for event in walk(plan)]
    feeding, rest = feed.split(program, events)
    for step, env in rest:
        _emit(program, step, env)
    output_byte = _output_byte(program)
    if len(program.statements) > MAX_STATEMENTS:
        raise ThimbleError(f"the plan has {len(program.statements)} steps, too many to generate")
    windows = program.kernels.values()
    kernels = [code(kernel, program) for kernel in windows]
    if program.cycles:
        kernels[:0] = [_permutation(program, unit) for unit in sorted(program.units)]
    statements = [statement() for statement in program.statements]
    arena_bytes = ceil(high_water_nibbles(plan, _arena_memory(plan), constants=False) / 2)
    source = render(
        "int4/model.c.j2",
        graph=graph,
        pixels=program.tables.pixels,
        scatter=program.tables.scatter,
        cycles=program.cycles,
        cycle_type=f"uint{c_bits(program.cycles)}_t",
        lines=_line_rows(program),
        edges=program.edges,
        pixel_steps=program.pixel_steps,
        shared=_declarations(program.shared),
        parameters=parameters.source(program),
        kernels=kernels,
        packed=any(k.window.weights is not None and k.window.weight_bits == 4 for k in windows),
        has_assembly=any(assembled(kernel, program) for kernel in windows),
        feed=feeding,
        statements=statements,
        output_byte=output_byte,
        aligned=graph.tensors[graph.output].dtype.bits > 8,
    )
    header = render(
        "int4/model.h.j2",
        graph=graph,
        provenance=sorted(provenance.items()),
        input=graph.tensors[graph.input],
        output=graph.tensors[graph.output],
        output_type=_c_type(graph),
        hardware=hardware,
        arena_bytes=arena_bytes,
        weight_bytes=sum(ceil(graph.tensors[name].bytes) for name in graph.constants),
        weights_in_flash=any(
            program.in_flash(buffer) for buffer in plan.buffers if buffer.role == "constant"
        ),
        parameters=parameters.Image.of(program),
    )
    steps = {"feed": feeding.step, "invoke": program.steps}
    return {
        "model.h": header,
        "model.c": source,
        "nn_cells.h": static_source("int4/nn_cells.h"),
        "steps.json": json.dumps(steps, indent=1) + "\n",
        **parameters.file(program),
    }


def _check(graph: Graph, plan: Plan) -> None:
    if plan.graph != graph.name:
        raise ThimbleError(f"the plan is for {plan.graph}, the graph is {graph.name}")
    if sum(bool(track.steps) for track in plan.tracks) != 1:
        raise ThimbleError("generated code runs one track of steps")
    output = graph.tensors[graph.output]
    if output.dtype.bits < 8:
        raise ThimbleError(
            f"the output {output.name} is {output.dtype}, but generated code returns whole bytes: "
            f"give {graph.producer(output.name).name} an output of 8 bits or more"
        )
    _check_memory(plan)


def _check_memory(plan: Plan) -> None:
    """Activations in one arena, constants above it or in flash."""
    arena = _arena_memory(plan)
    arena_bytes = ceil(high_water_nibbles(plan, arena, constants=False) / 2)
    for buffer in plan.buffers:
        kind, cells = plan.memory[buffer.memory].kind, buffer.addresses(buffer.box)
        if buffer.role == "constant":
            if kind not in ("ram", "rom"):
                raise ThimbleError(
                    f"{buffer.name}: generated code has constants in SRAM or flash, not in "
                    f"{buffer.memory}"
                )
            if buffer.memory == arena and int(cells.min()) < 2 * arena_bytes:
                raise ThimbleError(
                    f"{buffer.name}: generated code keeps constants above the arena, the plan has "
                    f"it at byte {int(cells.min()) / 2:g} of {arena}, below {arena_bytes}"
                )
        elif kind == "ram":
            if int(cells.max()) >= SCATTERED:
                raise ThimbleError(f"{buffer.name}: generated code addresses an arena of 16 KiB")
            if buffer.bits >= 8 and (cells % 2).any():
                raise ThimbleError(f"{buffer.name}: {buffer.bits}-bit elements must begin at bytes")


def _arena_memory(plan: Plan) -> str:
    """The one memory that activations live in, apart from an input that streams in."""
    kinds = {name: memory.kind for name, memory in plan.memory.items()}
    streams = {name for name in plan.resident if kinds[plan.buffer[name].memory] == "stream"}
    names = {b.memory for b in plan.buffers if b.role != "constant" and b.name not in streams}
    if len(names) != 1 or kinds[min(names)] != "ram":
        raise ThimbleError(
            f"generated code has one arena, the plan uses {', '.join(sorted(names))}"
        )
    return names.pop()


def _emit(program: Program, step: Step, env: Env) -> None:
    if isinstance(step, Move):
        return move.emit(program, step, env)
    if not isinstance(step, Compute):
        raise ThimbleError(
            f"generated code cannot express {type(step).__name__} after the input has arrived"
        )
    add_step(program, operators.window(program.graph, program.graph.operator(step.op)), step, env)


def _line_rows(program: Program) -> list[str]:
    rows = []
    for line in program.lines:
        # positions count modulo 2**16
        steps = [(step + 0x8000) % 0x10000 - 0x8000 for step in line.step[:2]]
        numbers = [line.start[0] & 0xFFFF, line.start[1], *steps]
        if program.edges:
            numbers += [*line.start[2:], *line.step[2:]]
        rows.append(f"{{{', '.join(map(str, (*numbers, line.count)))}}}")
    return rows


def _permutation(program: Program, unit: int) -> str:
    bits = c_bits(program.cycles)
    first = unit == min(program.units)
    return render(
        "int4/permute.c.j2",
        type=f"uint{bits}_t",
        read=f"nn_flash{bits}",
        unit=unit,
        first=first,
    )


def _declarations(shared: set[str]) -> list[str]:
    """Variables that assembly uses; of buffers the largest."""
    sizes = [int(name.split(":")[1]) for name in shared if name.startswith("nn_gather:")]
    words = [f"uint16_t {name}" for name in sorted(shared) if ":" not in name]
    return words + ([f"uint8_t nn_gather[{max(sizes)}]"] if sizes else [])


def _c_type(graph: Graph) -> str:
    return f"{graph.tensors[graph.output].dtype}_t"


def _output_byte(program: Program) -> int:
    """Where the result begins. One that is torn apart is put together at byte 0, in place: nothing
    else lives in the arena once it is computed."""
    buffer = program.plan.buffer[program.plan.output]
    elements = as_pixels(buffer).reshape(1, -1)
    packed = np.arange(elements.size).reshape(1, -1) * buffer.nibbles
    byte, width = int(elements[0, 0]) // 2, buffer.bits // 8
    if (elements - elements[0, 0] == packed).all() and byte % min(width, 4) == 0:
        return byte
    move.permute(program, elements, packed, buffer.nibbles)
    return 0
