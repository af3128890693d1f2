"""A card beside a firmware: its image on the way to a simulated one, and the time that it takes."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.codegen.card.image import NAME
from pipeline.hardware import Hardware
from pipeline.plan.rates import Rates
from pipeline.sealed_image import KEY_BYTES, MANIFEST, seal
from pipeline.targets.layers import INVOKE, REST, of_functions

CHIP_KEY = "chip.key"
"""A simulated chip's own (firmware/security)."""


def carry(source: Path, folder: Path) -> None:
    """A copy of the image in the folder ``source``, if there is one, and of how it is sealed."""
    for name in (NAME, MANIFEST):
        if (source / name).is_file():
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, folder / name)


def insert(source: Path, folder: Path) -> None:
    """The card with the image in ``source``, if there is one, for a simulated chip that runs in
    ``folder``. Where the image is sealed that chip is new: it has a key that nothing else knows,
    and was never started."""
    if not (source / MANIFEST).is_file():
        carry(source, folder)
    elif (source / NAME).is_file():
        key = secrets.token_bytes(KEY_BYTES)
        (folder / CHIP_KEY).write_bytes(key)
        seal(source, key, folder / NAME)


def beside(build: Path) -> Path | None:
    """The image in the folder ``build``, if there is one."""
    found = build / NAME
    return found if found.is_file() else None


def cycles(hardware: Hardware) -> tuple[int, ...]:
    """Of the board's clock, that a card takes to read: for a command, and for each block besides;
    and the same to write. What passes on the line is not in them."""
    card, megahertz = hardware.card, hardware.clock_hz / 1e6
    times = (card.read_command_us, card.read_block_us, card.write_command_us, card.write_block_us)
    return tuple(round(us * megahertz) for us in times)


def flags(hardware: Hardware, tick_ns: int) -> tuple[str, ...]:
    """For the compiler: ticks of a simulated core's timer that a card's command and each of its
    blocks take. The core counts an instruction a nanosecond, so that a cycle of the board's clock
    is one: an instruction a cycle. And the lines of its data cache. Functions that are called
    once stay functions: what each layer executes is counted by them.
    """
    if not hardware.card.bytes:
        return ()
    rates, ticks = Rates.of(hardware), hardware.clock_hz / 1e6 / tick_ns
    found = ["-fno-inline-functions-called-once"]
    found.append(f"-DSTORAGE_LINE_BYTES={hardware.card.line_bytes}")
    for word, each in (("READ", rates.read), ("WRITE", rates.write)):
        block_us = hardware.card.block_bytes * each.byte_us + each.block_us
        found.append(f"-DCARD_{word}_COMMAND_TICKS={round(each.command_us * ticks)}u")
        found.append(f"-DCARD_{word}_BLOCK_TICKS={round(block_us * ticks)}u")
    return tuple(found)


WAITING = ("_await", "_card_end")
"""Ends of the names of what waits for the card."""


def instructions(
    functions: Mapping[str, int], whole: int, names: Sequence[str]
) -> dict[str, Any] | None:
    """What the instructions of one inference were for: ``layers`` (layer, instructions) with
    functions of their own, ``invoke`` nn_invoke with those that it has swallowed, ``waiting``, and
    ``card`` all else: transfers are begun and ended. None where nothing waits for a card.

    Args:
        functions: the instructions of each, without what it called; ``whole``: of all.
    """
    named = [(name.partition(".")[0], count) for name, count in functions.items()]
    waiting = sum(count for name, count in named if name.endswith(WAITING))
    found = of_functions(functions, whole, names)
    if not waiting:
        return None
    layers = [(name, count) for name, count in found if name != REST]
    invoke = sum(count for name, count in functions.items() if name.endswith(f"_{INVOKE}"))
    rest = whole - sum(count for _, count in layers) - waiting - invoke
    return {"layers": layers, "invoke": invoke, "waiting": waiting, "card": rest}


def own_cycles(functions: Mapping[str, int], whole: int, names: Sequence[str]) -> int | None:
    """Of an inference of ``whole`` cycles on a core that makes the transfers itself: those that it
    takes for them; None where nothing waits for a card. Arguments as of ``instructions``."""
    found = instructions(functions, whole, names)
    return None if found is None else int(found["waiting"] + found["card"])
