"""Writing a firmware to a board: checked first, then the flasher's own command, then its answers
over the serial line.

No flasher has a dry run without hardware, so this has one: what would be written, into which
memory, and the exact command.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import ihex
from pipeline.codegen.card.image import NAME
from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware
from pipeline.sealed_image import MANIFEST
from pipeline.targets import cortex_m_board, parameters, protocol, tools
from pipeline.targets.progress import counted
from pipeline.targets.protocol import Command
from pipeline.targets.runs import Images, Runs, check_images
from pipeline.targets.serial_line import PATIENCE_S, Board, Line, termios_speed

FLASHER_PACKAGES = {
    "bossac": "bossa-cli",
    "avrdude": "avrdude",
    "openocd": "openocd",
    "pyocd": "python3-pyocd",
    "st-flash": "stlink-tools",
    "teensy_loader_cli": "teensy-loader-cli",
}
SEALING, SEALED = ("python", "-m", "pipeline.sealed_image"), "card.sealed.img"
HEX, BIN, ELF = "firmware.hex", cortex_m_board.BIN, cortex_m_board.ELF
UNSAID = 0xFFFF
"""A report's stack when it is more than that."""


@dataclass(frozen=True)
class Written:
    """Hold what the flasher is told to write, in ``folder``, checked: ``bytes`` from ``start`` to
    ``stop`` (one past), in a memory of so many bytes from ``memory_start`` on."""

    command: tuple[str, ...]
    folder: Path
    bytes: int
    start: int
    stop: int
    memory_start: int
    memory_bytes: int

    @property
    def text(self) -> str:
        return f"cd {shlex.quote(str(self.folder))} && {shlex.join(self.command)}"


def ready(hardware: Hardware, port: str, *, dry_run: bool) -> None:
    """Look before there is a firmware whether one could be written, to a board that is there.

    Raises:
        ThimbleError: when the board has no flasher, or its firmware no way to speak to it; when no
            computer has the line's rate; unless it is a ``dry_run``, without a port (saying the
            command to type), or when the port or the flasher is not there.
    """
    if not hardware.flasher:
        raise ThimbleError(f"hardware {hardware.name} has no flasher: set hardware.flasher")
    if hardware.regions and cortex_m_board.own(hardware) is None:
        raise ThimbleError(
            f"hardware {hardware.name}: no firmware for the board itself is built, because its "
            "UART is not known (hardware.uart) or memories outside of the chip are used, which "
            "nothing switches on: leave out target=flash"
        )
    termios_speed(hardware.baud)
    command = flashing(hardware, port or "PORT", HEX)
    if dry_run:
        return
    runs = f"it runs: {shlex.join(command)}; target.dry_run=true needs no board"
    if not port:
        raise ThimbleError(f"target=flash needs target.port, e.g. /dev/ttyACM0; {runs}")
    if not Path(port).exists():
        raise ThimbleError(f"no board at {port}: connect it or set target.port; {runs}")
    tools.require(command[0], FLASHER_PACKAGES.get(command[0], command[0]), "writes the firmware")


def checked(build: Path, hardware: Hardware, port: str) -> Written:
    """Return the flasher's command line for ``build/firmware.hex``, and what it will write.

    Raises:
        ThimbleError: when the file does not lie wholly in the flash that programs may use, or does
            not begin where the core looks for it; when the plan counts on more RAM than there is;
            and what ``ready`` raises for a dry run.
    """
    ready(hardware, port, dry_run=True)
    if (build / NAME).exists():
        image, before = shlex.quote(str((build / NAME).resolve())), "the image goes to a card by"
        if (build / MANIFEST).exists():
            sealing = shlex.join([*SEALING, str(build.resolve()), "chip.key", SEALED])
            image, before = SEALED, f"{sealing} seals the image, and that goes to a card by"
        raise ThimbleError(
            f"hardware {hardware.name}: there is no driver for a board's card yet: leave out "
            f"target=flash; {before} dd if={image} of=DEVICE bs=4M conv=fsync"
        )
    hexfile = build / HEX
    if not hexfile.exists():
        raise ThimbleError(f"{hexfile} is missing: run stage build again")
    flash = next((r for r in hardware.regions if r.kind == "rom" and not r.external), None)
    first, room = flash.start if flash else 0, hardware.flash_bytes
    if flash:
        room = min(room, flash.bytes)
        if hardware.sram_bytes > hardware.ram_in_one_piece:
            raise ThimbleError(
                f"hardware.sram_bytes={hardware.sram_bytes}: {hardware.title} has "
                f"{hardware.ram_in_one_piece} B in one piece: leave it out for target=flash"
            )
    content = ihex.load(hexfile)
    if not content:
        raise ThimbleError(f"{hexfile} is empty: run stage build again")
    beyond = [a for a in content if not first <= a < first + room]
    if beyond:
        reason = "" if flash else ": the boot loader lies there"
        raise ThimbleError(
            f"{hexfile} writes {len(beyond)} B beyond the {room} B of flash of "
            f"{hardware.title}, first at {min(beyond):#x}{reason}"
        )
    if min(content) != first:
        raise ThimbleError(
            f"{hexfile} begins at {min(content):#x}, {hardware.title} looks for its program at "
            f"{first:#x}: run stage build again"
        )
    span = min(content), max(content) + 1
    return Written(flashing(hardware, port, HEX), build.resolve(), len(content), *span, first, room)


def flashing(hardware: Hardware, port: str, hexfile: str) -> tuple[str, ...]:
    """Return its file is named without a folder, whose name would be Tcl to OpenOCD."""
    values = {"part": hardware.part, "port": port, "hex": hexfile, "bin": BIN, "elf": ELF}
    try:
        return tuple(word.format_map(values) for word in shlex.split(hardware.flasher))
    except (ValueError, LookupError) as error:
        raise ThimbleError(
            f"hardware.flasher={hardware.flasher!r} is no command line ({error}): quotes come in "
            "pairs, and {part}, {port}, {hex}, {bin} and {elf} are filled in"
        ) from None


def write(build: Path, hardware: Hardware, port: str) -> str:
    """Flash the board at ``port``; returns the command that did.

    Raises:
        ThimbleError: what ``ready`` and ``checked`` raise, and when flashing fails.
    """
    ready(hardware, port, dry_run=False)
    found = checked(build, hardware, port)
    tools.run(list(found.command), found.folder, "flashing")
    return found.text


def run(
    build: Path, target: Mapping[str, Any], hardware: Hardware, images: Images
) -> tuple[Runs | None, Written]:
    """Flash the board, then inferences of ``images`` on it; without them in a dry run.

    Args:
        target: the config group: ``port``, ``dry_run``.
    """
    port = str(target.get("port") or "")
    if target.get("dry_run"):
        return None, checked(build, hardware, port or "PORT")
    write(build, hardware, port)
    found = checked(build, hardware, port)
    if not len(images):
        return None, found
    return answers(build, hardware, port, images), found


def answers(
    build: Path, hardware: Hardware, port: str, images: Images, patience_s: float | None = None
) -> Runs:
    """Inferences of ``images`` on a board that has its firmware.

    Raises:
        ThimbleError: when it does not answer, is of another network, or refuses an image.
    """
    with Line(port, hardware.baud) as line, counted("board", len(images)) as advance:
        board = Board(line, patience_s or PATIENCE_S, hardware.wait_bytes)
        who = board.connect()
        check_images(images, who.input_bytes)
        if loaded := parameters.wanted(build, who.parameter_bytes):
            board.ask(Command.LOAD, loaded)
        outputs = np.zeros((len(images), who.outputs), who.dtype)
        cycles, stack = np.zeros(len(images), np.int64), 0
        for index, image in enumerate(images):
            outputs[index] = protocol.outputs(board.ask(Command.INFER, image.tobytes()), who)
            told = protocol.report(board.ask(Command.REPORT))
            cycles[index], stack = told.invoke_cycles, max(stack, told.stack_bytes)
            advance(1)
    stack_bytes = None if stack == UNSAID else stack
    return Runs(outputs, stack_bytes=stack_bytes, invoke_cycles=cycles)
