"""Compare each element with the interpreter's as it is written: after each step the program sends
what lies in its arena (``target.check=layers``; Gural & Murmann 2019, section 5.1)."""

from __future__ import annotations

import re
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from pipeline.artifacts import write_text
from pipeline.codegen import generate
from pipeline.codegen.card import sealed
from pipeline.codegen.checks import arena_memory
from pipeline.codegen.options import Options
from pipeline.errors import ThimbleError
from pipeline.frames import fed
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import Box, IntArray
from pipeline.hardware import Hardware
from pipeline.ihex import flash_image
from pipeline.kernels.feeding import feeds
from pipeline.plan.fit import roomy
from pipeline.plan.interpret import Interpreter
from pipeline.plan.steps import written
from pipeline.plan.storage import Storage
from pipeline.plan.unrolled import Event, walk
from pipeline.plan.vocabulary import Buffer, Move, Plan
from pipeline.targets import builds, card, host, parameters, protocol, qemu, simavr, toolchain
from pipeline.targets.harness import harness_sources
from pipeline.targets.protocol import Command, Reply

Ask = Callable[[bytes], Sequence[Reply]]
"""Returns a program's replies to what comes over its line from its start on."""


def check(graph: Graph, plan: Plan, hardware: Hardware, frames: IntArray, target: str) -> int:
    """Count the elements that the program writes, all of them as the interpreter does.

    Args:
        frames: (n, *input shape).
        target: ``host``, natively; else on the board's simulator.

    Raises:
        ThimbleError: names the first element that differs.
    """
    plan, compared, before = roomy(plan), 0, b""
    found: Mapping[str, IntArray] | None = None
    made = generate(graph, plan, hardware, {}, Options(stepped=True))
    given = np.ascontiguousarray(fed(graph, frames)).view(np.uint8).reshape(len(frames), -1)
    with _program(graph, plan, hardware, target, made) as ask:
        for number, (frame, sent) in enumerate(zip(frames, given, strict=True)):
            asked = protocol.encode(Command.INFER, sent.tobytes())
            *steps, answer = ask(before + asked)
            protocol.accept(answer, Command.INFER)
            ends = [n for n, each in enumerate(steps) if each.command == Command.INFER]
            steps = steps[ends[-1] + 1 :] if ends else steps  # of this call
            before += asked if graph.states else b""
            arenas = [each.payload for each in steps if each.command == Command.STEP]
            machine = Interpreter(plan, graph, frame, found)
            for event, counted, wrong in _compared(machine, arenas):
                if wrong:
                    raise ThimbleError(f"image {number}: {event}{_by(event, made)} {wrong}")
                compared += counted
            found = machine.left
    return compared


@contextmanager
def _program(
    graph: Graph, plan: Plan, hardware: Hardware, target: str, made: Mapping[str, str]
) -> Iterator[Ask]:
    """Build the program that was ``made``, which sends its arena, for as long as it is asked."""
    made = {**made, **harness_sources(hardware, swaps=bool(plan.on_card))}
    with tempfile.TemporaryDirectory(prefix="thimble.") as name:
        generated, build = Path(name) / "generated", Path(name) / "build"
        for file, text in made.items():
            write_text(generated / file, text)
        if plan.on_card:
            sealed.write(graph, plan, hardware, generated)
        loaded = parameters.NAME in made and flash_image(generated / parameters.NAME)
        before = protocol.encode(Command.LOAD, loaded) if loaded else b""
        if target == "host" or hardware.simulator == "native":
            card.carry(generated, build)
            toolchain.build_host(generated, build / "host")
            with host.runnable(build / "host") as program:
                yield lambda stream: protocol.replies(host.talk(program, before + stream))
            return
        size = builds.build(generated, build, hardware)
        if size.status != "ok":
            raise ThimbleError(
                f"target.check=layers: the program that sends what it computes does not fit "
                f"({size.where}): try target=host"
            )
        if hardware.simulator == "qemu":
            core = qemu.Core(build, hardware, vars(size))
            yield lambda stream: core.exchange(before + stream)[0]
            return
        shim = simavr.compile_shim(build)

        def ask(stream: bytes) -> Sequence[Reply]:
            elf, inserted = build / "firmware.elf", card.beside(build)
            with simavr.Chip(
                shim, elf, hardware, size.sections, line="instant", inserted=inserted
            ) as chip:
                return protocol.replies(chip.exchange(before + stream).reply)

        yield ask


def _compared(machine: Interpreter, arenas: Sequence[bytes]) -> Iterator[tuple[Event, int, str]]:
    """Yield each step that left an arena behind, how many elements it wrote, and what the first one
    is that the interpreter has otherwise, or ""."""
    plan, memory = machine.plan, arena_memory(machine.plan)
    own = machine.storage[memory]
    left, events = deque(arenas), list(walk(plan))
    first = sum(_in_arena(event, plan) for event in events) - len(arenas)  # as it came in
    for event in events:
        machine.step(event)
        made = written(event.step)
        if made is None or not _in_arena(event, plan):
            continue
        first -= 1
        if first >= 0:
            continue
        buffer = machine.place(made, event.env)
        box = made.box(buffer.shape, event.env)
        right = machine.read(buffer, box)
        machine.storage[memory] = chip = Storage(len(own.bytes))
        arena = np.frombuffer(left.popleft(), np.uint8)[: len(own.bytes)]
        chip.bytes[: len(arena)] = arena
        got = machine.read(buffer, box)
        machine.storage[memory] = own
        yield event, right.size, _said(buffer, box, got, right)


def _in_arena(event: Event, plan: Plan) -> bool:
    """Check whether a program runs the step and says so: it is no move to or from a card, and waits
    for no input."""
    step = event.step
    if isinstance(step, Move) and {step.src.buffer, step.dst.buffer} & set(plan.on_card):
        return False
    return written(step) is not None and not feeds(step, plan)


def _by(event: Event, made: Mapping[str, str]) -> str:
    """Name the function of model.c that is the layer's own, if there is one."""
    found = re.search(rf"\bnn_{getattr(event.step, 'op', '-')}(?=\()", made["model.c"])
    return f" by {found[0]} of model.c" if found else ""


def _said(buffer: Buffer, box: Box, got: IntArray, right: IntArray) -> str:
    wrong = np.argwhere(got != right)
    if not len(wrong):
        return ""
    place = tuple(wrong[0].tolist())
    at = tuple(first + n for (first, _), n in zip(box, place, strict=True))
    cell = int(buffer.addresses(tuple((n, n + 1) for n in at)).reshape(-1)[0])
    return (
        f"writes {len(wrong):,} of {right.size:,} elements otherwise than the interpreter, first "
        f"{buffer.tensor}{list(at)} at byte {cell // 2} of the arena: expected {right[place]}, "
        f"got {got[place]}"
    )
