"""The C files beside ``model.c`` that make a generated folder a whole program."""

from __future__ import annotations

from pathlib import Path

from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware

FIRMWARE = Path(__file__).resolve().parents[2] / "firmware"
HOST = "host"


def harness_sources(hardware: Hardware) -> dict[str, str]:
    """Text by file name: main loop, frames, the ports for the board's core and for the host, and
    what the linker is told, where that is the port's.

    The host's port is always there: the same sources are compiled natively to check them.

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
    files = (file for folder in folders for file in sorted(folder.iterdir()))
    return {file.name: file.read_text() for file in files if file.suffix in (".c", ".h", ".ld")}
