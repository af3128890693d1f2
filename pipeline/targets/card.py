"""A card beside a firmware: its image on the way to a simulated one, and the time that it takes."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.codegen.card.image import NAME
from pipeline.hardware import Hardware
from pipeline.plan.rates import Rates
from pipeline.sealed_image import KEY_BYTES, MANIFEST, seal
from pipeline.targets.layers import INVOKE, SHARED, owners, prefix_of

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
    """Return the image in the folder ``build``, if there is one."""
    found = build / NAME
    return found if found.is_file() else None


def cycles(hardware: Hardware) -> tuple[int, ...]:
    """Return the cycles of the board's clock that a card takes to read: for a command, and for each
    block besides; and the same to write. Transfers on the bus are not included."""
    card, megahertz = hardware.card, hardware.clock_hz / 1e6
    times = (card.read_command_us, card.read_block_us, card.write_command_us, card.write_block_us)
    return tuple(round(us * megahertz) for us in times)


def flags(hardware: Hardware, tick_ns: int) -> tuple[str, ...]:
    """Return the compiler's flags for a card: ticks of a simulated core's timer that a command and
    each of its blocks take, and the lines of the data cache. The core counts an instruction a
    nanosecond, so that a cycle of the board's clock is an instruction.
    """
    if not hardware.card.bytes:
        return ()
    rates, ticks = Rates.of(hardware), hardware.clock_hz / 1e6 / tick_ns
    found = [f"-DSTORAGE_LINE_BYTES={hardware.card.line_bytes}"]
    for word, each in (("READ", rates.read), ("WRITE", rates.write)):
        block_us = hardware.card.block_bytes * each.byte_us + each.block_us
        found.append(f"-DCARD_{word}_COMMAND_TICKS={round(each.command_us * ticks)}u")
        found.append(f"-DCARD_{word}_BLOCK_TICKS={round(block_us * ticks)}u")
    return tuple(found)


WAITING = ("_await", "_card_end")
"""Ends of the names of what waits for the card."""

STEPS = "steps"
"""The end of the name of what runs a tape."""

SEALING = ("aead_", "chacha20", "poly1305", "crc32")
"""Begins of the names of what seals and opens (firmware/security)."""


def callers(functions: Iterable[str]) -> tuple[str, ...]:
    """List what calls kernels where something waits for a card: nn_invoke, what runs its tape."""
    plain = {name: name.partition(".")[0] for name in functions}
    if not any(name.endswith(WAITING) for name in plain.values()):
        return ()
    call = tuple(f"{prefix_of(plain)}{each}" for each in (INVOKE, STEPS))
    return tuple(name for name, each in plain.items() if each in call)


def counted(modelled: Mapping[str, Any] | None, names: Sequence[str]) -> dict[str, Any] | None:
    """Sum up the inference whose cycles are modelled: ``kernels``, for each layer the cycles of
    every call of its kernels in order, low, median and high; ``sealing``, those of what seals and
    opens. None where no calls were counted."""
    calls = (modelled or {}).get("calls")
    if not modelled or calls is None:
        return None
    took = modelled["invoke_functions"]
    kernels, owner = dict[str, list[list[int]]](), owners(took, names)
    for function, (_, *band) in calls:
        if function in owner:
            kernels.setdefault(owner[function], []).append(band)
    sealing = sum(each[2] for name, each in took.items() if name.startswith(SEALING))
    return {"kernels": kernels, "sealing": sealing}


def own_cycles(functions: Mapping[str, int], whole: int, names: Sequence[str]) -> int | None:
    """Return the cycles that transfers take of an inference of ``whole`` cycles, on a core that
    makes them itself; None where nothing waits for a card.

    Args:
        functions: the cycles of each, without what it called.
    """
    call = callers(functions)
    computes, shared = {*call, *owners(functions, names)}, f"{prefix_of(functions)}{SHARED}"
    computes |= {name for name in functions if name.startswith(shared)}
    return whole - sum(functions[name] for name in computes) if call else None
