"""A network on a simulated Uno whose card lies (``fixture/sd_faults.c``)."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from unittest.mock import patch

import numpy as np

from pipeline.codegen.card.image import NAME, Image
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.sealing import Security
from pipeline.strategies.swap import Swap
from pipeline.targets import simavr, tools
from pipeline.targets.harness import FIRMWARE
from pipeline.targets.protocol import Command, FrameError, Reply, Status
from tests.codegen.card.faulty import Where
from tests.codegen.card.support import BLOCK, Program
from tests.codegen.card.test_simulated import with_large_weights
from tests.targets.cortex_m import board_named, built

FAULTS = Path(__file__).parent / "fixture" / "sd_faults.c"
FUNCTIONS = FAULTS.with_name("functions_avr.c")
WRAPPED = "nn_init", "nn_feed", "nn_invoke", "nn_take"
LEFT = "left.img"
"""What the card held after a cut of the power."""
TOLD = struct.Struct("<III")
STARTS = 8
"""What a call of nn_init adds to a function's number: one at the start, one before each frame."""


Kind = IntEnum(
    "Kind",
    "NONE FLIP_READ SHORT_READ ON_LINE FLIP_WRITE LOST_WRITE FLIP_CARD EXCHANGED GONE OTHER_CARD "
    "CUT TRY",
    start=0,
)


@dataclass(frozen=True)
class Fault:
    """As fixture/sd_faults.c has it."""

    kind: Kind
    after: int = 0
    count: int = 0
    source: int = 0
    target: int = 0


@dataclass(frozen=True)
class Told:
    """Blocks that passed; whether the fault came, and to which block."""

    passed: int
    came: bool
    block: int


@dataclass(frozen=True)
class FaultyUno:
    """
    Attributes:
        weights, maps, input: blocks of the card.
        feeds, begins, ends: blocks that have passed before the second of two frames is fed, before
            it is computed, and after.
    """

    program: Program
    shim: Path
    weights: range
    maps: range
    input: range
    feeds: int = 0
    begins: int = 0
    ends: int = 0

    def replies(
        self, frames: IntArray, fault: Fault, folder: Path, card: Path | None = None
    ) -> tuple[list[Reply], Told]:
        """Of inferences on a chip that is new, until the power is cut; ``card``: what is in it,
        else the image."""
        told = folder / "told"
        told.write_bytes(bytes(TOLD.size))
        found: list[Reply] = []
        numbers = (fault.kind, fault.after, fault.count, fault.source, fault.target)
        said = {
            "THIMBLE_FAULT": " ".join(str(int(n)) for n in numbers),
            "THIMBLE_TOLD": str(told),
            "THIMBLE_LEFT": str(folder / LEFT),
            "THIMBLE_COMMANDS": str(folder / "commands"),
        }
        with patch.dict(os.environ, said), self.chip(card) as chip:
            for frame in frames:
                try:
                    reply, _ = chip.ask(Command.INFER, frame.astype(np.int8).tobytes())
                except FrameError:  # the harness has a wrong check say that nn_take failed
                    if fault.kind != Kind.TRY or fault.target % STARTS != Where.TAKE:
                        raise
                    reply = Reply(Command.INFER, Status.CARD_FAILED, b"")
                except ThimbleError:
                    if fault.kind != Kind.CUT:
                        raise
                    break
                found.append(reply)
        passed, came, block = TOLD.unpack(told.read_bytes())
        return found, Told(passed, bool(came), block)

    @property
    def firmware(self) -> bytes:
        return (self.program.build / "firmware.elf").read_bytes()

    def chip(self, card: Path | None) -> simavr.Chip:
        return simavr.Chip(
            self.shim,
            self.program.build / "firmware.elf",
            self.program.hardware,
            self.program.size.sections,
            line="instant",
            inserted=card or self.program.build / NAME,
        )


def faulty_uno(folder: Path, security: Security = "none", graph: Graph | None = None) -> FaultyUno:
    """A network whose weights are eight times the SRAM, if not ``graph``; its firmware says which
    function runs (``fixture/functions_avr.c``)."""
    graph, hardware = graph or with_large_weights(), board_named("arduino_sd")
    hardware = replace(hardware, card=replace(hardware.card, security=security))
    plan = Swap().plan(graph, hardware)
    flags = (*hardware.toolchain.flags, *(f"-Wl,--wrap={name}" for name in WRAPPED))
    hardware = replace(hardware, toolchain=replace(hardware.toolchain, flags=flags))
    (folder / "generated").mkdir(parents=True)
    shutil.copyfile(FUNCTIONS, folder / "generated" / FUNCTIONS.name)
    program = Program(folder, graph, hardware, plan, built(folder, graph, hardware, plan))
    if not hardware.card.summed:
        return FaultyUno(program, compiled(folder), *(range(0),) * 3)
    image = Image(graph, plan, apart=True)
    (_, weights, count), (_, maps, made) = image.extents
    fed = next(b for b in map(plan.buffer.__getitem__, plan.resident) if b.tensor == graph.input)
    sums = image.sums(fed)
    found = FaultyUno(
        program,
        compiled(folder),
        range(weights, weights + count),
        range(maps, maps + made),
        range(sums["input_first"], sums["input_stop"]),
    )
    ends = []
    for count in (1, 2):
        zeros = np.zeros((count, *graph.tensors[graph.input].shape), np.int64)
        _, told = found.replies(zeros, Fault(Kind.NONE), folder)
        ends.append(told.passed)
    whole, rest = divmod(graph.tensors[graph.input].size, BLOCK)
    fed = whole + (2 if rest else 0)  # what is written in part is read before
    return replace(found, feeds=ends[0], begins=ends[0] + fed, ends=ends[1])


def compiled(folder: Path) -> Path:
    """The shim with a card that lies."""
    sources: Sequence[Path] = (simavr.SHIM, *simavr.CARD, FAULTS)
    command = ["cc", "-O2", "-std=gnu99", f"-I{FIRMWARE}/simulators", f"-I{FIRMWARE}/storage"]
    command += [*map(str, sources), "-Wl,--wrap=sd_card_pass,--wrap=spi_connect"]
    command += ["-o", "faulty_shim", "-lsimavr", "-lelf"]
    tools.run(command, folder, "compiling the shim with faults")
    return folder / "faulty_shim"
