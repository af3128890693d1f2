"""Writing a firmware to a board: checked first, then the flasher's own command.

No flasher has a dry run without hardware, so this is one: without a port it checks what would be
written and says the exact command.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from pipeline import ihex
from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware
from pipeline.targets import tools

FLASHER_PACKAGES = {"avrdude": "avrdude"}


def command(build: Path, hardware: Hardware, port: str) -> list[str]:
    """The flasher's command line for ``build/firmware.hex``.

    Raises:
        ThimbleError: when the board has no flasher, or the file does not lie wholly in the flash
            that programs may use.
    """
    if not hardware.flasher:
        raise ThimbleError(f"hardware {hardware.name} has no flasher: set hardware.flasher")
    hexfile = build / "firmware.hex"
    if not hexfile.exists():
        raise ThimbleError(
            f"hardware {hardware.name}: its firmware is for a simulated core, none for the board "
            "itself is built yet: leave out target=flash"
        )
    beyond = [a for a in ihex.load(hexfile) if not 0 <= a < hardware.flash_bytes]
    if beyond:
        raise ThimbleError(
            f"{hexfile} writes {len(beyond)} B beyond the {hardware.flash_bytes} B of flash of "
            f"{hardware.title}, first at {min(beyond):#x}: the boot loader lies there"
        )
    values = {"part": hardware.part, "port": port, "hex": str(hexfile)}
    return [word.format_map(values) for word in shlex.split(hardware.flasher)]


def write(build: Path, hardware: Hardware, port: str) -> str:
    """Flash the board at ``port``; returns the command that did.

    Raises:
        ThimbleError: without a port (saying the command to type), when the port or the flasher
            is not there, or when flashing fails.
    """
    words = command(build, hardware, port or "PORT")
    text = shlex.join(words)
    if not port:
        raise ThimbleError(f"target=flash needs target.port, e.g. /dev/ttyACM0; it runs: {text}")
    if not Path(port).exists():
        raise ThimbleError(f"no board at {port}: connect it or set target.port; it runs: {text}")
    tools.require(words[0], FLASHER_PACKAGES.get(words[0], words[0]), "writes the firmware")
    tools.run(words, Path.cwd(), "flashing")
    return text
