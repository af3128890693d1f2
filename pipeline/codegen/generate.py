"""From a graph and its plan to C, for any core. Only the plan decides orders and addresses."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from math import ceil, prod
from typing import NamedTuple

from pipeline import ihex
from pipeline.codegen import arrival, checks, result
from pipeline.codegen import tape as tapes
from pipeline.codegen.arrival import Arrival
from pipeline.codegen.card import tracks
from pipeline.codegen.card.code import Card
from pipeline.codegen.constants import bytes_of
from pipeline.codegen.cortex_m.woven import woven
from pipeline.codegen.int4 import code
from pipeline.codegen.options import Options
from pipeline.codegen.program import Program
from pipeline.codegen.render import KERNELS, render, static_source, without_idle
from pipeline.codegen.sound import Sound
from pipeline.codegen.states import OWNER_BYTES, States
from pipeline.codegen.tape import Tape
from pipeline.codegen.walker import emit
from pipeline.errors import ThimbleError
from pipeline.frontends.frontend import RATE_HZ, Frontend
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels.cortex_m import WEAVES
from pipeline.plan import matches
from pipeline.plan.fit import roomy
from pipeline.plan.vocabulary import Plan

CORES = ("avr", "cortex_m", "host")
DEFAULTS = Options()

HEADERS = {path.name: path.relative_to(KERNELS).as_posix() for path in KERNELS.rglob("*.h")}
"""Paths of the headers that a program may include, by their names."""

STORAGE = (
    "storage.h", "storage.c", "storage_streamed.c", "block_device.h",
    "data_cache.h", "data_cache.c", "sd_commands.h", "sd_crc.h", "spi.h", "spi_avr.h",
)  # fmt: skip
"""Files that a program with a card has besides; a device is the port's."""

SEALING = {True: ("chacha20_poly1305.h", "chacha20_poly1305.c", "chip.h"), False: ("crc32.h",)}
"""And one of which what leaves the chip is sealed, by whether that takes a key; a chip is the
port's."""


def generate(
    graph: Graph, plan: Plan, hardware: Hardware, provenance: Mapping[str, str],
    options: Options = DEFAULTS, frontend: Frontend | None = None,
) -> dict[str, str]:  # fmt: skip
    """Text by file name, self-contained, and a function of the arguments alone: ``model.h``,
    ``model.c`` and the headers that it includes.

    Beside them, where they are known, ``steps.json``, which says what the calls of nn_invoke are
    part of, and, where the parameters are sent over the line, ``parameters.hex``.

    The plan has to be proved (``plan/proof.py``): C does whatever a wrong one says.

    Args:
        provenance: what the code was made of, as (name, hash) for a comment.
        options: labels and stack, for the header. Names have the default prefix all the same:
            ``options.names.files`` gives these files, and others that go with them, another.
        frontend: what makes the input of samples; None where it arrives as it is.

    Raises:
        ThimbleError: for a plan of another graph, an unknown core, and for a plan, an operator or a
            type that no kernel can express.
    """
    made = _Parts.of(graph, plan, hardware, options, frontend)
    source, program, card = _source(made), made.program, made.card
    included = {name: static_source(HEADERS[name]) for name in (*program.headers, "nn_memory.h")}
    if card:
        included |= {name: static_source(f"../storage/{name}") for name in STORAGE}
    if card and card.summed:
        included["storage.h"] = f"#define STORAGE_SUMS\n{included['storage.h']}"
    if card and card.sealed:
        included |= {
            name: static_source(f"../security/{name}") for name in SEALING[card.sealed.keyed]
        }
    files = {"model.h": _header(made, provenance, options), "model.c": source, **included}
    if program.steps is not None and not made.tape.stretches and hardware.core == "avr":
        said = {"feed": made.coming.step, "invoke": program.steps}
        files["steps.json"] = json.dumps(said, indent=1) + "\n"
    if image := program.windows.image:
        files["parameters.hex"] = ihex.dump(image.content)
    return files


def outline(graph: Graph, plan: Plan, hardware: Hardware) -> tuple[str, int]:
    """``model.c`` without its large constants, and the bytes of these: in a moment, however many
    weights there are. Raises what ``generate`` does."""
    made = _Parts.of(graph, plan, hardware)
    source, constants = _source(made, whole=False), made.program.constants
    tables = constants.tables.values()
    return source, sum(len(table.values) * bytes_of(table.type) for table in tables)


class _Parts(NamedTuple):
    """Parts of a program that are decided before any of its text is written."""

    program: Program
    coming: Arrival
    output_bytes: Sequence[int]
    tape: Tape
    statements: list[str]
    card: Card | None
    sound: Sound | None

    @classmethod
    def of(
        cls, graph: Graph, plan: Plan, hardware: Hardware, options: Options = DEFAULTS,
        frontend: Frontend | None = None,
    ) -> _Parts:  # fmt: skip
        matches.check(roomy(plan), graph)  # what does not fit, the linker says
        if hardware.core not in CORES:
            raise ThimbleError(
                f"no code generator for core {hardware.core} ({hardware.name}); "
                f"have {', '.join(CORES)}"
            )
        checks.check(graph, plan)
        program = Program(graph, plan, hardware, options.stepped)
        computing, moving = tracks.split(plan)
        card = Card(program, moving) if moving else None
        coming, rest = card.begin(computing) if card else arrival.split(program, computing.steps)
        emit(program, rest)
        output_bytes = card.end() if card else result.places(program)
        coming = arrival.finished(program, coming)
        sound = None
        if frontend:
            if "nn_feed" not in coming.source:
                raise ThimbleError(
                    f"hardware.input_again=true: a front end feeds {graph.input}, which does not "
                    "lie elsewhere: leave it out"
                )
            sound = Sound.of(frontend, graph.tensors[graph.input], stream=bool(graph.states))
            coming = replace(coming, rewind=(*coming.rewind, *sound.rewind))
        lines = [line() for line in program.lines]
        tape = tapes.tape(lines)
        statements = tapes.statements(lines, tape)
        return cls(program, coming, output_bytes, tape, statements, card, sound)


def _source(made: _Parts, whole: bool = True) -> str:
    program = made.program
    windows, states = code.source(program.windows), States.of(program)
    kernels = [without_idle(kernel.code()) for kernel in program.kernels.values()]
    if program.hardware.cpu in WEAVES:
        kernels = list(map(woven, kernels))
    if program.constants.tables or any(part.code() for part in (program.places, program.orders)):
        program.headers.add("nn_int8.h")
    if windows or program.permutations.nibbles:
        program.headers.add("nn_cells.h")
    return render(
        "frame/model.c.j2", **made._asdict(), avr=program.hardware.core == "avr", windows=windows,
        tables=list(program.constants.tables.values()) if whole else [], kernels=kernels,
        shared=[part.code() for part in program.tables if part.code()], states=states,
        count=arrival.counters(program)["count"], little_endian=_little_endian(program, made.card),
        outputs=list(zip(words(program.graph.outputs), made.output_bytes, strict=True)),
        inputs=list(zip(words(program.graph.inputs), made.coming.at, strict=False)),
    )  # fmt: skip


def words(ends: Sequence[object]) -> list[str]:
    """Return what the C names of several inputs or outputs have behind them: their numbers."""
    return [f"_{number}" for number in range(len(ends))] if len(ends) > 1 else [""]


def _little_endian(program: Program, card: Card | None) -> bool:
    """Check whether numbers of several bytes, in the order of what is fed, sent or on a card, are
    read as the core's own."""
    graph, buffers = program.graph, card.image.weights if card else ()
    numbers = [
        *(graph.tensors[name].dtype.bits for name in graph.inputs),
        *(buffer.bits for buffer in buffers),
    ]
    return max(numbers) > 8 or program.windows.image is not None


def _header(made: _Parts, provenance: Mapping[str, str], options: Options) -> str:
    program, fillable, made_of = made.program, bool(made.coming.at), sorted(provenance.items())
    graph, plan, hardware = program.graph, program.plan, program.hardware
    arena = checks.arena_memory(plan)
    again = any(memory.kind == "frame" for memory in plan.memories)
    inputs, outputs = ([graph.tensors[n] for n in each] for each in (graph.inputs, graph.outputs))
    in_ram = sum(
        ceil(prod(buffer.shape) * buffer.nibbles / 2)
        for buffer in plan.buffers
        if buffer.role == "constant" and plan.memory[buffer.memory].kind == "ram"
    )
    return render(
        "frame/model.h.j2", graph=graph, provenance=made_of, hardware=hardware, card=made.card,
        id=f"0x{sha256(repr(made_of).encode()).hexdigest()[:8]}", avr=hardware.core == "avr",
        labels=options.labels_in_c(outputs), label_bytes=options.label_bytes(outputs),
        stack=options.stack, stepped=options.stepped, sound=made.sound, rate_hz=RATE_HZ,
        inputs=list(zip(words(inputs), inputs, strict=True)), fillable=fillable, again=again,
        input_bytes=plan.frames * sum(map(arrival.input_bytes, inputs)),
        outputs=list(zip(words(outputs), outputs, strict=True)),
        kept=again or (fillable and result.inputs_are_kept(program)), macs=graph.macs,
        count=arrival.counters(program)["count"], arena_bytes=checks.arena_bytes(plan),
        ram_bytes=next((m.bytes for m in hardware.memories if m.name == arena), 0),
        state_bytes=ceil(graph.state_bytes), weights_in_ram=in_ram,
        saved_bytes=OWNER_BYTES + sum(ceil(graph.tensors[of.read].bytes) for of in graph.states),
        weight_bytes=sum(ceil(graph.tensors[name].bytes) for name in graph.constants),
        parameters=program.windows.image,
    )  # fmt: skip
