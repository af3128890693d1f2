"""The driver of SD cards on SPI, compiled natively beside a modelled card, and called from here."""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from pipeline.home import ROOT

STORAGE, MODEL = ROOT / "firmware" / "storage", ROOT / "firmware" / "simulators"
FIXTURE = Path(__file__).parent / "fixture"
BLOCK = 512
FLAGS = ("-std=gnu99", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined",
         "-fno-sanitize-recover=all", "-fPIC", "-shared", "-DSTORAGE_SD")  # fmt: skip
READ, WRITE = 0, 1


class Status(IntEnum):
    OK = 0
    BUSY = 1
    FAILED = 2


class Fault(IntEnum):
    """As ``enum sd_fault`` of ``sd_card.h``."""

    SOUND = 0
    WRONG_BYTE = 1
    WRONG_CHECK = 2
    SHORT = 3
    ERROR_TOKEN = 4
    NO_TOKEN = 5
    WRITE_ERROR = 6
    BUSY = 7
    BAD_STATUS = 8
    GONE = 9


MOST_BYTES_A_POLL = 64 + 60
"""Those of the data, or of waiting, and two commands with their answers."""


@dataclass
class Line:
    """``program``: from ``compiled``. All cards of one program share its variables."""

    program: ctypes.CDLL

    def card(
        self, content: bytes, *, high_capacity: bool = True, version: int = 2, idle_loops: int = 0,
        command: int = 0, block: int = 0,
    ) -> None:  # fmt: skip
        """In bytes of the line: how long it takes for a command, and for a block."""
        self.image = ctypes.create_string_buffer(content, len(content))
        self.program.line_card(
            self.image, len(content) // BLOCK, high_capacity, version, idle_loops, command, block
        )

    def open(self) -> Status:
        return Status(self.program.storage_open())

    def fault(self, fault: Fault, after: int = 0, times: int = 1) -> None:
        self.program.line_fault(fault, after, times)

    def flip(self, number: int, mask: int, to_card: bool) -> None:
        self.program.line_flip(ctypes.c_uint64(number), mask, to_card)

    def noise(self, answers: bytes) -> None:
        self.answers = ctypes.create_string_buffer(answers, len(answers))
        self.program.line_noise(self.answers, len(answers))

    def passed(self) -> int:
        return int(self.program.line_passed())

    def read(self, at: int, size: int) -> tuple[Status, bytes]:
        """With memory on both sides that stays as it is."""
        memory = ctypes.create_string_buffer(b"\x5a" * (size + 2 * BLOCK), size + 2 * BLOCK)
        status = self._moved(READ, at, memory, size)
        assert memory.raw[:BLOCK] == memory.raw[-BLOCK:] == b"\x5a" * BLOCK
        return status, memory.raw[BLOCK:-BLOCK]

    def write(self, at: int, content: bytes) -> Status:
        memory = ctypes.create_string_buffer(bytes(BLOCK) + content, len(content) + BLOCK)
        return self._moved(WRITE, at, memory, len(content))

    def reads(self, at: int, content: bytes) -> bool:
        """Whether that is what is read; no long bytes are said when it is not."""
        return self.read(at, len(content)) == (Status.OK, content)

    def holds(self, content: bytes) -> bool:
        return bool(self.image.raw == content)

    def crc7(self, content: bytes) -> int:
        return int(self.program.line_crc7(content, len(content)))

    def crc16(self, content: bytes) -> int:
        return int(self.program.line_crc16(content, len(content)))

    def _moved(
        self, direction: int, at: int, memory: ctypes.Array[ctypes.c_char], size: int
    ) -> Status:
        place = ctypes.byref(memory, BLOCK)
        status = self.program.storage_start(direction, ctypes.c_uint32(at), place, size)
        while status == Status.BUSY:
            before = self.passed()
            status = self.program.storage_poll()
            assert self.passed() - before <= MOST_BYTES_A_POLL
        assert self.program.storage_poll() == Status.OK  # nothing is under way
        return Status(status)


def compiled(folder: Path, *flags: str) -> Line:
    sources = (*STORAGE.glob("s*.c"), MODEL / "sd_card.c", FIXTURE / "line.c")
    out = folder / "line.so"
    command = ["cc", *FLAGS, *flags, f"-I{FIXTURE}", f"-I{STORAGE}", f"-I{MODEL}",
               *map(str, sources), "-o", str(out)]  # fmt: skip
    subprocess.run(command, check=True)
    program = ctypes.CDLL(str(out))
    program.line_passed.restype = ctypes.c_uint64
    program.line_crc7.restype, program.line_crc16.restype = ctypes.c_uint8, ctypes.c_uint16
    return Line(program)
