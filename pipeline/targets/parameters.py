"""The parameters of a firmware that does not hold them itself: sent before the first image."""

from __future__ import annotations

from pathlib import Path

from pipeline import ihex
from pipeline.errors import ThimbleError

NAME = "parameters.hex"


def wanted(build: Path, parameter_bytes: int) -> bytes:
    """Return what to load into the firmware of the folder ``build``, which takes so many bytes;
    empty if it takes none.

    Raises:
        ThimbleError: when the file is missing, damaged, or not what the firmware takes.
    """
    if not parameter_bytes:
        return b""
    file = build / NAME
    if not file.is_file():
        raise ThimbleError(f"{file} is missing: run stages generate and build again")
    content = ihex.flash_image(file)
    if len(content) != parameter_bytes:
        raise ThimbleError(
            f"{file} has {len(content)} B, the firmware takes {parameter_bytes} B of parameters: "
            "run stages generate and build again"
        )
    return content
