"""A firmware on QEMU's Cortex-M: whole test sets in one process, instructions counted.

Frames go through files (semihosting). With ``-icount shift=0`` an instruction takes a nanosecond of
simulated time, so that the firmware's own timer counts instructions, in steps of its tick, and
counts the same ones every time. They are instructions, not cycles.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware
from pipeline.targets import card, machines, parameters, protocol, qemu_cycles, tools
from pipeline.targets import qemu_faults as faults
from pipeline.targets.cortex_m import ARENA
from pipeline.targets.progress import counted
from pipeline.targets.protocol import Command, Identity
from pipeline.targets.runs import Images, Runs, check_images, in_parallel, shares

PROGRAM = "qemu-system-arm"
PACKAGE = "qemu-system-arm"
IMAGES_A_RUN = 25
PATIENCE_S = 7200
PAINT = 0xC5


class Core:
    """One simulated machine, running one file of requests after the other."""

    def __init__(self, build: Path, hardware: Hardware, size: Mapping[str, Any]) -> None:
        tools.require(PROGRAM, PACKAGE, f"simulates {hardware.title}")
        self.elf = (build / "firmware.elf").resolve()
        self.hardware = hardware
        self.sections: Mapping[str, Any] = size["sections"]
        self.code: qemu_cycles.Functions = {n: tuple(at) for n, at in size["code"].items()}

    def exchange(
        self, stream: bytes, more: Sequence[str] = ()
    ) -> tuple[list[protocol.Reply], bytes]:
        """Return the replies to ``stream``, and the whole RAM after the last of them; ``more`` are
        options for QEMU.

        Raises:
            ThimbleError: when it faults, or gives no answer.
        """
        command = [
            PROGRAM, "-M", machines.machine(self.hardware).name, "-kernel", str(self.elf),
            "-icount", "shift=0", "-semihosting-config", "enable=on,target=native",
            "-display", "none", "-monitor", "none", "-serial", "none", "-parallel", "none",
            *more,
        ]  # fmt: skip
        with tempfile.TemporaryDirectory(prefix="thimble.") as name:
            folder = Path(name)
            (folder / "requests").write_bytes(stream)
            card.insert(self.elf.parent, folder)
            try:
                done = subprocess.run(
                    command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                    text=True, errors="replace", check=False, timeout=PATIENCE_S,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                raise ThimbleError(
                    f"the firmware gave no answer within {PATIENCE_S} s on the simulated core"
                ) from None
            if done.returncode:
                stack = int(self.sections["stack"][1])
                said = faults.explained(
                    done.returncode, done.stderr, self.elf, self.hardware, stack
                )
                raise ThimbleError(f"the firmware on the simulated core {said}")
            replies = protocol.replies((folder / "replies").read_bytes())
            return replies, (folder / "memory").read_bytes()


def run(build: Path, size: Mapping[str, Any], hardware: Hardware, images: Images) -> Runs:
    """Inferences of ``images``, on as many simulated cores as there are cores here; see Runs.

    Raises:
        ThimbleError: QEMU is missing, the firmware reads or writes outside of the board's memory,
            crashes, or refuses an image.
    """
    core = Core(build, hardware, size)
    replies, memory = core.exchange(protocol.encode(Command.IDENTIFY))
    who: Identity = protocol.identity(protocol.accept(replies[0], Command.IDENTIFY))
    check_images(images, who.input_bytes)
    loaded = parameters.wanted(build, who.parameter_bytes)

    def several(part: slice) -> tuple[Runs, bytes]:
        found = _infer(core, who, loaded, images[part])
        advance(len(found[0].outputs))
        return found

    with counted("simulated core", len(images)) as advance, ThreadPoolExecutor(1) as pool:
        model = pool.submit(_modelled, core, who, loaded, images[: qemu_cycles.IMAGES])
        portions = list(shares(len(images), IMAGES_A_RUN, who.in_turn))
        parts = in_parallel(several, portions)
        modelled = model.result()
    memories = [memory, *(after for _, after in parts)]
    none = Runs(np.zeros((0, who.outputs), who.dtype))
    every = [none, *(part for part, _ in parts)]
    return Runs(
        np.concatenate([part.outputs for part in every]),
        stack_bytes=max(_stack(after, size) for after in memories),
        modelled_cycles=modelled,
        instructions=np.concatenate([part.instructions for part in every]),
        arena_touched_bytes=max(_touched(after, size) for after in memories),
    )


def _modelled(core: Core, who: Identity, loaded: bytes, images: Images) -> dict[str, Any] | None:
    """None where there is no cycle model."""
    version = tools.run([PROGRAM, "--version"], Path.cwd(), PROGRAM)
    if not len(images) or not qemu_cycles.models(core.hardware, version):
        return None
    with tempfile.TemporaryDirectory(prefix="thimble.") as name:
        plugin, out = qemu_cycles.compile_plugin(Path(name), core.hardware), Path(name) / "counts"
        callers = card.callers(core.code)
        more = qemu_cycles.options(plugin, out, core.hardware, core.code, callers)
        _infer(core, who, loaded, images, more)
        calls = qemu_cycles.calls_beside(out).read_text() if callers else ""
        return qemu_cycles.cycles(out.read_text(), core.hardware, core.code, calls)


def _infer(
    core: Core, who: Identity, loaded: bytes, images: Images, more: Sequence[str] = ()
) -> tuple[Runs, bytes]:
    stream = protocol.encode(Command.LOAD, loaded) if loaded else b""
    report = protocol.encode(Command.REPORT)
    stream += b"".join(protocol.encode(Command.INFER, i.tobytes()) + report for i in images)
    replies, memory = core.exchange(stream, more)
    if loaded and replies:
        protocol.accept(replies.pop(0), Command.LOAD)
    if len(replies) != 2 * len(images):
        raise protocol.FrameError(
            f"the simulated core gave {len(replies)} answers to {2 * len(images)} requests"
        )
    outputs = [protocol.outputs(protocol.accept(r, Command.INFER), who) for r in replies[::2]]
    reports = [protocol.report(protocol.accept(r, Command.REPORT)) for r in replies[1::2]]
    counts = np.array([r.invoke_cycles for r in reports], np.int64)
    return Runs(np.stack(outputs), instructions=counts), memory


def _stack(memory: bytes, size: Mapping[str, Any]) -> int:
    """Bytes from the deepest one written up to the stack's top; painted ones are below it."""
    start, room = size["sections"]["stack"]
    stack = memory[start : start + room]
    return len(stack.lstrip(bytes([PAINT])))


def _touched(memory: bytes, size: Mapping[str, Any]) -> int:
    """Bytes of the arena up to the last one ever written."""
    start, room = size["sections"][ARENA]
    return len(memory[start : start + room].rstrip(bytes([PAINT])))
