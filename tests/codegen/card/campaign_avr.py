"""``python -m tests.codegen.card.campaign_avr [FAULTS [CUTS [FILE]]]``: the campaign on an Uno.

Each fault has a simulated chip of its own, which is given two frames: the fault comes in the second
one, while it is computed or fed. And each command of the line (SD Physical Layer Simplified
Specification, 7.3.1) fails in each function that issues it: once to three times, which the driver
has to repair, and so often that it gives up once to three times; also with ``security=unchecked``,
and where a result is taken. Otherwise as ``tests.codegen.card.campaign``.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.targets.protocol import Status
from tests.codegen.card.campaign import EVERY, POWER, batches, shown
from tests.codegen.card.faulty import Way, Where
from tests.codegen.card.faulty_avr import STARTS, Fault, FaultyUno, Kind, blocks, faulty_uno
from tests.codegen.card.support import given, large
from tests.codegen.card.tries import REPAIRED, WRONG, Counts, end, failed, images, name

FED = 500
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
Drawn = tuple[str, Fault, frozenset[Status]]


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


def feeding(made: FaultyUno, rng: np.random.Generator) -> Drawn:
    """Draw any fault while the second frame is fed; of the line's own once to three times."""
    after, many = int(rng.integers(made.feeds, made.begins)), int(rng.integers(1 << 30))
    away = Fault(Kind.GONE, after, (int(rng.integers(1, 400)), 1 << 30)[many % 2])
    found = [*passing(after, many), ("the card is removed", away, Status.NO_CARD)]
    name, fault, status = found[int(rng.integers(len(found)))]
    times = 1 + many // 8 % 3
    fault = replace(fault, count=times) if fault.kind == Kind.ON_LINE else fault
    return f"while feeding, {name}", fault, GONE if status in GONE else frozenset({status})


def drawn(made: FaultyUno, rng: np.random.Generator) -> Drawn:
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
    return name, fault, expected if isinstance(expected, frozenset) else frozenset({expected})


def injected(
    made: FaultyUno,
    count: int,
    seed: int,
    folder: Path,
    any_fault: Callable[[FaultyUno, np.random.Generator], Drawn] = drawn,
) -> Counts:
    """What so many faults ended in."""
    rng, found = np.random.default_rng(seed), Counts()
    for _ in range(count):
        name, fault, expected = any_fault(made, rng)
        frames = given(made.program.graph, 2)
        (first, reply), told = made.replies(frames, fault, folder)
        assert made.program.right(first, frames[0])
        if told.block in made.input and fault.kind in (Kind.FLIP_WRITE, Kind.LOST_WRITE):
            expected = frozenset({Status.INPUT_LOST})
        ends = end(made.program, expected, frames[1], reply)
        ends = NOT_REACHED if ends == REPAIRED and not told.came else ends
        found[f"{name}: {ends}"] += 1
    return found


def fed(made: FaultyUno, count: int, seed: int, folder: Path) -> Counts:
    return injected(made, count, seed, folder, feeding)


def tries(made: FaultyUno, folder: Path) -> Iterator[Drawn]:
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
            yield f"{once} in nn_{name(where)}", fault, statuses(made, where, times)


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


def tried(made: FaultyUno, count: int, seed: int, folder: Path) -> Counts:
    """Count what ``count`` of all tries ended in, or all; the next frame has to be right."""
    every = list(tries(made, folder))
    rng, found = np.random.default_rng(seed), Counts()
    for n in sorted(rng.permutation(len(every))[:count]):
        name, fault, expected = every[n]
        judged = max(0, fault.target // STARTS - 2)
        frames = images(made.program.graph, judged + 2, rng)
        replies, told = made.replies(frames, fault, folder)
        assert told.came and made.program.right(replies[-1], frames[-1])
        assert judged == 0 or made.program.right(replies[0], frames[0])
        found[f"{name}: {end(made.program, expected, frames[judged], replies[judged])}"] += 1
    return found


def cut(made: FaultyUno, count: int, seed: int, folder: Path) -> Counts:
    """What became of the next start where the power was cut in any block."""
    rng, found = np.random.default_rng(seed), Counts()
    frames = given(made.program.graph, 2)
    for _ in range(count):
        fault = Fault(
            Kind.CUT,
            int(rng.integers(made.ends - 8)),
            int(rng.integers(1 << 30)),
            int(rng.integers(2)),
            blocks(made.program),
        )
        replies, told = made.replies(frames, fault, folder)
        assert told.came and len(replies) < 2
        again, _ = made.replies(frames, Fault(Kind.NONE), folder, made.left(folder))
        right = len(again) == 2 and all(map(made.program.right, again, frames))
        found[f"{POWER}: {'the next start is right' if right else WRONG}"] += 1
    return found


def run(
    folder: Path, what: str, parts: dict[Any, int], path: Path | None, **made_with: Any
) -> Counts:
    """All batches of one firmware."""
    folder.mkdir()
    made = faulty_uno(folder, **made_with)
    firmware = (made.program.build / "firmware.elf").read_bytes()
    return batches(
        made, firmware, parts, lambda part: {"what": f"{part} on an Uno{what}"}, path, folder
    )


def main(faults: str = "1000", cuts: str = "175", path: str = "") -> int:
    file = Path(path) if path else None
    with tempfile.TemporaryDirectory(prefix="thimble.") as name:
        folder = Path(name)
        parts = {injected: int(faults), cut: int(cuts), fed: FED}
        found = run(folder / "faults", "", parts, file)
        shown(f"security=none on an Uno: {faults} faults, {cuts} cuts of power", found)
        taken = large((6, 6, 4), 40)
        for what, graph in (("none", None), ("unchecked", None), ("unchecked, taken", taken)):
            made_with = {"security": what.split(",")[0], "graph": graph, "tells": True}
            tries_ = run(folder / what, f", {what}", {tried: EVERY}, file, **made_with)
            shown(f"security={what} on an Uno: commands that fail", tries_)
            found += tries_
    return int(failed(found))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
