"""The C files beside ``model.c`` that make a generated folder a whole program."""

from __future__ import annotations

import re
from pathlib import Path

from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware

FIRMWARE = Path(__file__).resolve().parents[2] / "firmware"
HOST = "host"
MOST_REPLY_BYTES = 0xFFFF
"""Most bytes of outputs in one reply: firmware/protocol counts them in 16 bits."""

OUTPUTS = re.compile(
    r"^#define \w+_OUTPUT(?:_\d+)?_COUNT (\d+)$.*?^typedef u?int(\d+)_t", re.M | re.S
)


DEVICE = "_device.[ch]"
"""Ending of the names of files for a card, as a pattern."""


def harness_sources(hardware: Hardware, swaps: bool = False) -> dict[str, str]:
    """Text by file name: main loop, frames, the ports for the board's core and for the host, and
    what the linker is told, where that is the port's.

    The host's port is always there: the same sources are compiled natively to check them.

    Args:
        swaps: the program needs a card.

    Raises:
        ThimbleError: when there is no port for ``hardware.core``.
    """
    ports = FIRMWARE / "ports"
    if not (ports / hardware.core).is_dir():
        known = ", ".join(sorted(p.name for p in ports.iterdir() if p.is_dir()))
        raise ThimbleError(
            f"hardware {hardware.name}: no firmware port for core {hardware.core!r}; have {known}"
        )
    folders = (FIRMWARE / "protocol", ports / HOST, ports / hardware.core)
    files = [file for folder in folders for file in sorted(folder.iterdir())]
    files = [file for file in files if file.suffix in (".c", ".h", ".ld")]
    if swaps:
        files += sorted((FIRMWARE / "storage").glob(f"*{DEVICE}"))
    if swaps and hardware.card.keyed:
        files += sorted((FIRMWARE / "security").glob("*_chip.c"))
    return {file.name: file.read_text() for file in files}


def check_reply(header: Path) -> None:
    """Check that all outputs of the network that ``model.h`` describes go into one reply.

    Raises:
        ThimbleError: they do not, or the file does not say how many there are.
    """
    found = OUTPUTS.findall(header.read_text()) if header.is_file() else []
    if not found:
        raise ThimbleError(f"{header} does not say NN_OUTPUT_COUNT: run stage generate again")
    sizes = [(int(count), int(bits) // 8) for count, bits in found]
    if (all_bytes := sum(count * width for count, width in sizes)) > MOST_REPLY_BYTES:
        each = " and ".join(f"{count:,} of {width} B" for count, width in sizes)
        raise ThimbleError(
            f"the network gives {all_bytes:,} bytes of output ({each}), a "
            f"reply of the firmware's protocol has room for {MOST_REPLY_BYTES:,}: run it with "
            "until=generate and Predictor (docs/predictor.md), or let the network give less"
        )
