"""A card beside a firmware: its image on the way to a simulated one, and the time that it takes."""

from __future__ import annotations

import shutil
from pathlib import Path

from pipeline.codegen.card.image import NAME
from pipeline.hardware import Hardware
from pipeline.plan.rates import Rates


def carry(source: Path, folder: Path) -> None:
    """A copy of the image in the folder ``source``, if there is one."""
    if (source / NAME).is_file():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / NAME, folder / NAME)


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
    is one: an instruction a cycle.
    """
    if not hardware.card.bytes:
        return ()
    rates, ticks = Rates.of(hardware), hardware.clock_hz / 1e6 / tick_ns
    found = []
    for word, each in (("READ", rates.read), ("WRITE", rates.write)):
        block_us = hardware.card.block_bytes * each.byte_us + each.block_us
        found.append(f"-DCARD_{word}_COMMAND_TICKS={round(each.command_us * ticks)}u")
        found.append(f"-DCARD_{word}_BLOCK_TICKS={round(block_us * ticks)}u")
    return tuple(found)
