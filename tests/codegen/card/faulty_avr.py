"""A network on a simulated Uno whose card lies (``fixture/sd_faults.c``). Each fault has a chip of
its own, which is given two frames, and comes in the second one, while it is computed or fed. And
each command of the line (SD Physical Layer Simplified Specification, 7.3.1) fails in each function
that issues it: once to three times, which the driver has to repair, and so often that it gives up
once to three times."""

import os
import shutil
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import product
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
from tests.codegen.card.support import BLOCK, Program, Way, Where, given
from tests.codegen.card.test_simulated import with_large_weights
from tests.codegen.card.tries import REPAIRED, Case, Counts, end, images, name
from tests.targets.cortex_m import board_named, built

FAULTS = Path(__file__).parent / "fixture" / "sd_faults.c"
FUNCTIONS = FAULTS.with_name("functions_avr.c")
WRAPPED = "nn_init", "nn_feed", "nn_invoke", "nn_take"
LEFT = "left.img"
"""File with what the card held after a cut of the power."""
TOLD = struct.Struct("<III")
STARTS = 8
"""Added to a function's number by a call of nn_init: one at the start, one before each frame."""


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
        """Reply on a chip that is new, until a power cut; ``card``: its content, else the image."""
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


DRIVER = 4
"""Tries of a command by the driver (firmware/storage/sd_device.c)."""
TIMES = (1, 2, 3, DRIVER, 2 * DRIVER, 3 * DRIVER)
ON_LINE = {1: "a byte", 2: "a check", 3: "a short block", 4: "an error", 5: "nothing comes",
           6: "a refused write", 7: "busy for ever", 8: "a failed write"}  # fmt: skip
"""The model's own faults (firmware/simulators/sd_card.h)."""
NOT_REACHED = "not reached"
SHORT, LONG = range(1, 400), 1 << 30
"""Bytes of the line for which a card is away: those that are waited for, and more than all."""
OTHERS = frozenset({Status.OTHER_CARD, Status.NO_CARD})
"""Another card, or none yet."""
GONE = frozenset({Status.CARD_FAILED, Status.NO_CARD})


def passing(after: int, many: int) -> list[tuple[str, Fault, Status]]:
    """List faults of blocks that pass."""
    line = 1 + many % 8
    return [
        ("a bit of what is read", Fault(Kind.FLIP_READ, after, many), Status.OK),
        ("a short read", Fault(Kind.SHORT_READ, after, many), Status.OK),
        (f"on the line: {ON_LINE[line]}", Fault(Kind.ON_LINE, after, 1, line), Status.OK),
        ("a bit of what is written", Fault(Kind.FLIP_WRITE, after, many), Status.OK),
        ("a lost write", Fault(Kind.LOST_WRITE, after), Status.OK),
    ]


def feeding(made: FaultyUno, rng: np.random.Generator) -> Case:
    """Draw any fault while the second frame is fed; of the line's own once to three times."""
    after, many = int(rng.integers(made.feeds, made.begins)), int(rng.integers(1 << 30))
    away = Fault(Kind.GONE, after, (int(rng.integers(1, 400)), 1 << 30)[many % 2])
    found = [*passing(after, many), ("the card is removed", away, Status.NO_CARD)]
    name, fault, status = found[int(rng.integers(len(found)))]
    times = 1 + many // 8 % 3
    fault = replace(fault, count=times) if fault.kind == Kind.ON_LINE else fault
    expected = GONE if status in GONE else frozenset({status})
    return Case(f"while feeding, {name}", fault, expected)


def drawn(made: FaultyUno, rng: np.random.Generator) -> Case:
    """Draw any fault while the second frame is computed, and the statuses that it may end with."""

    def pick(numbers: range) -> int:
        return int(rng.integers(numbers.start, numbers.stop))

    after, many = pick(range(made.begins + 1, made.ends)), pick(range(1 << 30))
    maps = [n for n in made.maps if n not in made.input]
    first, second = rng.choice(np.array(made.weights), 2, replace=False)
    begins, flip = made.begins, Kind.FLIP_CARD
    exchanged = Fault(Kind.EXCHANGED, begins, 0, first, second)
    found = (
        *passing(after, many),
        ("a bit of a feature map", Fault(flip, after, many, maps[many % len(maps)]), Status.OK),
        ("a bit of the weights", Fault(flip, begins, many, first), Status.CARD_DAMAGED),
        ("blocks of weights exchanged", exchanged, Status.CARD_DAMAGED),
        ("a bit of the input", Fault(flip, begins, many, pick(made.input)), Status.INPUT_LOST),
        ("the card is removed and put back", Fault(Kind.GONE, after, pick(SHORT)), Status.OK),
        ("the card is removed", Fault(Kind.GONE, after, LONG), Status.NO_CARD),
        ("another network's card", Fault(Kind.OTHER_CARD, after, pick(SHORT)), OTHERS),
    )
    name, fault, expected = found[pick(range(len(found)))]
    any_of = expected if isinstance(expected, frozenset) else frozenset({expected})
    return Case(name, fault, any_of)


def judged_frames(
    made: FaultyUno, cases: Sequence[Case], folder: Path, rng: np.random.Generator
) -> Counts:
    """Count what became of ``cases``; after commands that failed the next frame has to be right."""
    found = Counts()
    for case in cases:
        fault, expected = case.fault, case.expected
        tried = fault.kind == Kind.TRY
        at = max(0, fault.target // STARTS - 2) if tried else 1
        frames = images(made.program.graph, at + 2, rng) if tried else given(made.program.graph, 2)
        replies, told = made.replies(frames, fault, folder)
        assert at == 0 or made.program.right(replies[0], frames[0])
        assert not tried or (told.came and made.program.right(replies[-1], frames[-1]))
        if told.block in made.input and fault.kind in (Kind.FLIP_WRITE, Kind.LOST_WRITE):
            expected = frozenset({Status.INPUT_LOST})
        ends = end(made.program, expected, frames[at], replies[at])
        ends = NOT_REACHED if ends == REPAIRED and not told.came else ends
        found[f"{case.name}: {ends}"] += 1
    return found


def tries(made: FaultyUno, folder: Path) -> Iterator[Case]:
    """Have the line's commands fail in each way, in each function that issues them: of each kind
    the first, one in the middle and the last, of the start, of the first frame's check and of the
    second frame."""
    dry = Fault(Kind.TRY, 0, 0, 0, STARTS + Where.CHECK)
    made.replies(images(made.program.graph, 2), dry, folder)
    noted = (folder / "commands").read_bytes()
    for where in Where:
        at = where + STARTS * {Where.INIT: 1, Where.CHECK: 2}.get(where, 3)
        issued = [
            number for said, number in zip(noted[::2], noted[1::2], strict=True) if said == at
        ]
        for command, times, way in product(chosen(issued), TIMES, Way):
            once = "a command fails" if times < DRIVER else "the driver gives up"
            fault = Fault(Kind.TRY, command, times, way, at)
            yield Case(f"{once} in nn_{name(where)}", fault, statuses(made, where, times))


def chosen(issued: Sequence[int]) -> list[int]:
    found = set[int]()
    for number in issued:
        there = [n for n, each in enumerate(issued) if each == number]
        found |= {there[0], there[len(there) // 2], there[-1]}
    return sorted(found)


def statuses(made: FaultyUno, where: Where, times: int) -> frozenset[Status]:
    """Say what may come of it: an inference begins anew once, or more often."""
    again = made.program.hardware.card.summed and where == Where.INVOKE
    return frozenset({Status.OK}) if times < DRIVER + again else GONE


def after_cut(
    made: FaultyUno, frames: IntArray, rng: np.random.Generator, folder: Path
) -> list[Reply]:
    """Run the next start where the power was cut in any block."""
    after, many, reads = (int(rng.integers(n)) for n in (made.ends - 8, 1 << 30, 2))
    blocks = (made.program.build / NAME).stat().st_size // BLOCK
    fault = Fault(Kind.CUT, after, many, reads, blocks)
    replies, told = made.replies(frames, fault, folder)
    assert told.came and len(replies) < len(frames)
    return made.replies(frames, Fault(Kind.NONE), folder, folder / LEFT)[0]
