"""Parameters that are not in the program but sent over the line before the first frame.

They lie in SRAM side by side in the order they are sent. The program knows their CRC-32: its
arithmetic relies on the range of their sums (``pipeline/codegen/packing.py``), so other parameters
are as wrong as damaged ones.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from pipeline import ihex
from pipeline.codegen.constants import c_bits
from pipeline.codegen.int4.windows import Windows

NAME = "parameters.hex"


@dataclass(frozen=True)
class Image:
    """The parameters as they are sent."""

    content: bytes

    @classmethod
    def of(cls, windows: Windows) -> Image | None:
        """None for a program that holds them itself. All kernels have to be known."""
        if not windows.parameters:
            return None
        return cls(b"".join(array.content for array in windows.parameters))

    @property
    def bytes(self) -> int:
        return len(self.content)

    @property
    def crc(self) -> int:
        """CRC-32 of IEEE 802.3, as zlib has it."""
        return zlib.crc32(self.content)

    @property
    def count_type(self) -> str:
        """The C type of a number of these bytes."""
        return f"uint{max(16, c_bits([self.bytes]))}_t"


def file(windows: Windows) -> dict[str, str]:
    """``parameters.hex``, or nothing."""
    image = Image.of(windows)
    return {NAME: ihex.dump(image.content)} if image else {}
