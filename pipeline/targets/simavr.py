"""A firmware on simavr, cycle by cycle, through ``firmware/simulators/simavr_shim.c``.

The shim is compiled when it is needed (a fifth of a second) and is a program of its own, which
keeps libsimavr (GPL-3) out of this one.
"""

from __future__ import annotations

import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware
from pipeline.targets import card, parameters, protocol, tools
from pipeline.targets.elf import RAM_SECTIONS
from pipeline.targets.harness import FIRMWARE
from pipeline.targets.layers import SHARED, Layers, prefix_of
from pipeline.targets.progress import counted
from pipeline.targets.protocol import Command, Identity
from pipeline.targets.runs import Images, Runs, check_images, in_parallel, shares
from pipeline.targets.zeros import no_skips

SHIM = FIRMWARE / "simulators" / "simavr_shim.c"
CARD = [SHIM.with_name(name) for name in ("simavr_spi.c", "sd_card.c")]
PACKAGES = "libsimavr-dev libelf-dev"
SEED = 2048
IMAGES_A_CHIP = 20
"""A second of work: so long an interrupted run goes on."""

Line = Literal["paced", "instant"]

RECORD = struct.Struct("<10I3Q")
STATES = ("waits for input", "gave no answer for 60 s of its own time", "crashed", "sleeps")


@dataclass(frozen=True)
class Exchange:
    """Outcome of putting bytes on the line; counts are of this exchange unless said otherwise.

    Attributes:
        reply: every byte the firmware sent.
        step_cycles: of each function that the last nn_invoke called; its own cycles are not here.
        function_cycles: of each function that is counted, what it calls and is not counted
            included.
        overruns: bytes lost because the firmware read too late.
        stack_bytes: deepest stack since reset, by the lowest stack pointer.
        overlap_bytes: how far that reached into the statics.
        stray_stores, stray_address: stores into constants or below the stack since reset, and
            the first one's address.
        byte_cycles: what a byte takes on the line.
        feed_cycles, invoke_cycles: in nn_init and nn_feed, in nn_invoke.
        latency_cycles: last fed byte read until the first answer byte written, waits left out.
    """

    reply: bytes
    step_cycles: tuple[int, ...]
    function_cycles: tuple[int, ...]
    overruns: int
    stack_bytes: int
    overlap_bytes: int
    stray_stores: int
    stray_address: int
    byte_cycles: int
    feed_cycles: int
    invoke_cycles: int
    latency_cycles: int


def compile_shim(folder: Path) -> Path:
    """The shim, compiled into ``folder``. Raises ThimbleError naming what is not installed."""
    tools.require("cc", "gcc", "compiles the simulator's shim")
    try:
        sources = [str(file) for file in (SHIM, *CARD)]
        tools.run(["cc", "-O2", "-std=gnu99", *sources, "-o", "simavr_shim", "-lsimavr", "-lelf"],
                  folder, "compiling the simulator's shim")  # fmt: skip
    except ThimbleError as error:
        if any(lacking in str(error) for lacking in ("simavr/", "-lsimavr", "-lelf")):
            raise ThimbleError(
                f"simavr is not installed (runs AVR firmware): sudo apt-get install {PACKAGES}"
            ) from None
        raise
    return folder / "simavr_shim"


class Chip:
    """One simulated chip, powered on with garbage in its memory; a context manager.

    Args:
        shim: from ``compile_shim``.
        elf: the firmware.
        hardware: gives part and clock.
        sections: of ``size.json``: start and bytes by name, for the guard and the steps.
        line: ``paced``: a byte takes its time at the firmware's own baud rate; ``instant``: it is
            there whenever the firmware looks.
        seed: of the power-on garbage.
        functions: start and bytes of those whose cycles are counted, while the network runs.
        inserted: the image of a card, which stays as it is; None: there is none.
    """

    def __init__(
        self,
        shim: Path,
        elf: Path,
        hardware: Hardware,
        sections: Mapping[str, Any],
        *,
        line: Line = "paced",
        seed: int = SEED,
        functions: Sequence[tuple[int, int]] = (),
        inserted: Path | None = None,
    ) -> None:
        self._wait_bytes = hardware.wait_bytes
        constants = sections.get("nn_parameters") or sections.get(".data", (0, 0))
        invoke = sections.get("nn_invoke", (0, 0))
        ram = [sections[name] for name in RAM_SECTIONS if name in sections]
        statics_end = max((start + size for start, size in ram), default=0)
        self._command = [
            str(shim), str(elf), hardware.part, str(hardware.clock_hz), str(seed), line,
            str(constants[0]), str(sum(constants)), str(statics_end),
            str(invoke[0]), str(sum(invoke)),
            str(inserted or ""), *map(str, card.cycles(hardware)),
            *(str(end) for start, size in functions for end in (start, start + size)),
        ]  # fmt: skip

    def __enter__(self) -> Self:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, stderr=pipe)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def exchange(self, stream: bytes) -> Exchange:
        """Put ``stream`` on the line, run until the firmware waits for more.

        Raises:
            ThimbleError: when it crashes, sleeps or never waits again.
        """
        requests, records = self._process.stdin, self._process.stdout
        assert requests is not None and records is not None
        try:
            requests.write(struct.pack("<I", len(stream)) + stream)
            requests.flush()
        except BrokenPipeError:
            pass  # a chip that failed while starting; its record says how
        head = records.read(RECORD.size)
        if len(head) < RECORD.size:
            said = self._process.communicate()[1].decode(errors="replace").strip().splitlines()
            raise ThimbleError(f"the simulator ended: {said[-1] if said else 'no message'}")
        state, count, *values = RECORD.unpack(head)
        if state:
            raise ThimbleError(
                f"the firmware {STATES[state]} on the simulated chip; its stack took "
                f"{values[1]} B, {values[2]} B of them in the statics"
            )
        steps, functions = values.pop(6), values.pop(6)
        reply = records.read(count)
        of_steps = struct.unpack(f"<{steps}I", records.read(4 * steps))
        of_functions = struct.unpack(f"<{functions}I", records.read(4 * functions))
        return Exchange(reply, of_steps, of_functions, *values)

    def infer(self, payload: bytes) -> tuple[protocol.Reply, Exchange]:
        """Do as ``ask``, waiting for the firmware where that asks for it."""
        waits = protocol.waits(len(payload), self._wait_bytes)
        *begun, rest = protocol.pieces(Command.INFER, payload, waits)
        fed = [self._fed(piece) for piece in begun]
        reply, done = self._answer(rest)
        functions = zip(*(each.function_cycles for each in [*fed, done]), strict=True)
        whole = replace(
            done,
            feed_cycles=done.feed_cycles + sum(each.feed_cycles for each in fed),
            function_cycles=tuple(map(sum, functions)),
        )
        return reply, whole

    def _fed(self, piece: bytes) -> Exchange:
        done = self.exchange(piece)
        check(done)
        if done.reply != bytes([protocol.READY]):
            raise protocol.FrameError(
                f"the chip said {done.reply!r} within an input: was it built for another "
                "hardware.wait_bytes?"
            )
        return done

    def ask(self, command: Command, payload: bytes = b"") -> tuple[protocol.Reply, Exchange]:
        """One request and its reply. Raises ThimbleError also for what ``check`` finds."""
        return self._answer(protocol.encode(command, payload))

    def _answer(self, stream: bytes) -> tuple[protocol.Reply, Exchange]:
        done = self.exchange(stream)
        check(done)
        answers = protocol.replies(done.reply)
        if len(answers) != 1:
            raise protocol.FrameError(f"the chip gave {len(answers)} answers to one request")
        return answers[0], done


def run(build: Path, size: Mapping[str, Any], hardware: Hardware, images: Images) -> Runs:
    """Inferences of ``images`` on simulated chips, one a core at a time; see Runs.

    Raises:
        ThimbleError: simavr is missing, the firmware crashes, refuses an image, is late for the
            line, or writes where it must not.
    """
    elf = build / "firmware.elf"
    layers = Layers.of(size.get("steps", {}))
    code = {} if layers.names else own_functions(size.get("code", {}))
    inserted = card.beside(build)
    line: Line = "paced"
    with tempfile.TemporaryDirectory(prefix="thimble.") as name:
        shim = compile_shim(Path(name))

        def one_chip(part: slice) -> Runs:
            with Chip(
                shim, elf, hardware, size["sections"], functions=[*code.values()],
                inserted=inserted, line=line,
            ) as chip:  # fmt: skip
                return _infer(chip, build, layers, images[part], advance)

        with counted("simulated chip", len(images)) as advance:
            portions = shares(len(images), IMAGES_A_CHIP, size.get("in_turn", False))
            parts = in_parallel(one_chip, list(portions) or [slice(0, 0)])
        patched, skips = no_skips(elf.read_bytes(), size.get("code", {}).values())
        slow = None
        if skips and len(images):
            elf, line, advance = Path(name) / "patched.elf", "instant", lambda _: None
            elf.write_bytes(patched)
            slow = one_chip(slice(0, 1))
            if not np.array_equal(slow.outputs, parts[0].outputs[:1]):
                raise ThimbleError("products with activations of 0 change the outputs: a bug")
    return Runs(
        np.concatenate([p.outputs for p in parts]),
        np.concatenate([p.latency_cycles for p in parts]),
        np.concatenate([p.compute_cycles for p in parts]),
        layers.names,
        np.concatenate([p.layer_cycles for p in parts]),
        max(p.stack_bytes or 0 for p in parts),
        max(p.painted_stack_bytes or 0 for p in parts),
        functions=tuple(code),
        function_cycles=np.concatenate([p.function_cycles for p in parts]),
        unskipped_cycles=None if slow is None else int(slow.latency_cycles[0]),
    )


def own_functions(code: Mapping[str, Any]) -> dict[str, Any]:
    """Return those whose cycles are counted apart."""
    shared = f"{prefix_of(code)}{SHARED}"
    return {name: at for name, at in code.items() if name.partition(".")[0] != shared}


def _infer(chip: Chip, build: Path, layers: Layers, images: Images, advance: Any) -> Runs:
    reply, _ = chip.ask(Command.IDENTIFY)
    who: Identity = protocol.identity(protocol.accept(reply, Command.IDENTIFY))
    check_images(images, who.input_bytes)
    if loaded := parameters.wanted(build, who.parameter_bytes):
        reply, _ = chip.ask(Command.LOAD, loaded)
        protocol.accept(reply, Command.LOAD)
    outputs = np.zeros((len(images), who.outputs), who.dtype)
    latency, compute = np.zeros((2, len(images)), np.int64)
    by_layer = np.zeros((len(images), len(layers.names)), np.int64)
    by_function = []
    for index, image in enumerate(images):
        reply, done = chip.infer(image.tobytes())
        outputs[index] = protocol.outputs(protocol.accept(reply, Command.INFER), who)
        latency[index] = done.latency_cycles
        compute[index] = done.feed_cycles + done.invoke_cycles
        by_layer[index] = layers.add_up(done.feed_cycles, done.invoke_cycles, done.step_cycles)
        by_function.append(done.function_cycles)
        advance(1)
    reply, done = chip.ask(Command.REPORT)
    told = protocol.report(protocol.accept(reply, Command.REPORT))
    stacks = done.stack_bytes, told.stack_bytes
    counted_cycles = np.array(by_function, np.int64).reshape(
        len(images), len(by_function[0]) if by_function else 0
    )
    return Runs(
        outputs,
        latency,
        compute,
        layers.names,
        by_layer,
        *stacks,
        function_cycles=counted_cycles,
    )


def check(done: Exchange) -> None:
    """Raises ThimbleError for anything a chip may do once but a firmware must not."""
    if done.overlap_bytes:
        raise ThimbleError(
            f"a stack of {done.stack_bytes} B ran {done.overlap_bytes} B into the statics"
        )
    if done.stray_stores:
        raise ThimbleError(
            f"the firmware wrote to its constants or below its stack {done.stray_stores} times, "
            f"first at {done.stray_address:#x}"
        )
    if done.overruns:
        raise ThimbleError(
            f"the firmware was late for {done.overruns} bytes of the line, which it computes on as "
            "they come: try hardware.wait_bytes=N, a row of the input, after which the host waits, "
            "hardware.streams_input=false, which holds the input, or a lower hardware.baud"
        )
