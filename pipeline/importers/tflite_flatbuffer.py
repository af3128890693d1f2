"""Reading a flatbuffer from a file that may be damaged or hostile.

The generated readers follow any offset, backwards and out of the file too. Here every read is
checked against the file's end first, and nothing is copied that the file does not hold.
Source of the format: https://flatbuffers.dev/internals.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.errors import ThimbleError

CODES = {"bool": "?", "i8": "b", "u8": "B", "i32": "i", "u32": "I", "f32": "f", "u64": "Q"}
"""Names of scalar types and how ``struct`` calls them."""


def read(data: bytes, position: int, kind: str) -> Any:
    """Return the scalar of type ``kind`` (a ``struct`` code) at ``position``."""
    size = struct.calcsize(kind)
    if position < 0 or position + size > len(data):
        raise ThimbleError(f"the file is damaged: an offset leads to byte {position}")
    return struct.unpack_from(f"<{kind}", data, position)[0]


def root(data: bytes) -> Table:
    return Table(data, read(data, 0, "I"))


@dataclass(frozen=True)
class Table:
    """A table at ``position``: fields are found by their number in the schema."""

    data: bytes
    position: int

    def field(self, number: int, size: int) -> int | None:
        """Locate field ``number`` of ``size`` bytes; None if the file leaves it out."""
        vtable = self.position - read(self.data, self.position, "i")
        entry = 4 + 2 * number
        if entry + 2 > read(self.data, vtable, "H"):
            return None
        offset = read(self.data, vtable + entry, "H")
        if offset + size > read(self.data, vtable + 2, "H"):
            raise ThimbleError(f"the file is damaged: a field ends outside its table ({offset})")
        return self.position + offset if offset else None

    def scalar(self, number: int, kind: str, default: Any = 0) -> Any:
        """``kind`` is one of ``CODES``."""
        code = CODES[kind]
        where = self.field(number, struct.calcsize(code))
        return default if where is None else read(self.data, where, code)

    def table(self, number: int) -> Table | None:
        where = self.field(number, 4)
        return None if where is None else Table(self.data, where + read(self.data, where, "I"))

    def vector(self, number: int, item_bytes: int) -> tuple[int, int]:
        """(first byte, number of items) of a vector that lies inside the file as a whole."""
        where = self.field(number, 4)
        if where is None:
            return 0, 0
        where += read(self.data, where, "I")
        count = read(self.data, where, "I")
        if count * item_bytes > len(self.data) - where - 4:
            raise ThimbleError(f"the file is damaged: {count} items do not fit into it")
        return where + 4, count

    def count(self, number: int) -> int:
        """Count the tables in the vector ``number``."""
        return self.vector(number, 4)[1]

    def item(self, number: int, index: int) -> Table:
        """Table ``index`` of the vector ``number``."""
        first, count = self.vector(number, 4)
        if not 0 <= index < count:
            raise ThimbleError(f"the file is damaged: entry {index} of {count} is asked for")
        where = first + 4 * index
        return Table(self.data, where + read(self.data, where, "I"))

    def numbers(self, number: int, dtype: str, most: int) -> tuple[Any, ...]:
        """Return the items of a vector of at most ``most`` scalars; ``dtype`` is numpy's.

        Many tables may share one vector, so that a small file could ask for a lot of memory.
        """
        kind = np.dtype(dtype).newbyteorder("<")
        first, count = self.vector(number, kind.itemsize)
        if count > most:
            raise ThimbleError(
                f"the file is damaged: a list has {count} entries, at most {most} fit"
            )
        return tuple(np.frombuffer(self.data, kind, count, first).tolist())

    def raw(self, number: int) -> memoryview:
        first, count = self.vector(number, 1)
        return memoryview(self.data)[first : first + count]

    def text(self, number: int) -> str:
        return bytes(self.raw(number)[:4096]).decode(errors="replace")
