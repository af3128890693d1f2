"""Faults of the card of a simulated Uno: each has a chip of its own, which is given two frames, and
comes in the second one, while it is computed or fed. And each command of the line (SD Physical
Layer Simplified Specification, 7.3.1) fails in each function that issues it: once to three times,
which the driver has to repair, and so often that it gives up once to three times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from pipeline.codegen.card.image import NAME
from pipeline.graph.tensor import IntArray
from pipeline.targets.protocol import Reply, Status
from tests.codegen.card.faulty import Way, Where
from tests.codegen.card.faulty_avr import LEFT, STARTS, Fault, FaultyUno, Kind
from tests.codegen.card.support import BLOCK, given
from tests.codegen.card.tries import REPAIRED, Case, Counts, end, images, name

DRIVER = 4
"""How often the driver tries a command (firmware/storage/sd_device.c)."""
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
