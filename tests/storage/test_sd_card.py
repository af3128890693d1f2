"""The driver of SD cards on SPI beside a modelled card that is strict, faulty, or not there: no
wrong byte is accepted, and it always comes to an end."""

import ctypes
import subprocess
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.home import ROOT
from tests.tiers import quick

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
        """Check whether that is what is read; long bytes are not printed if it isn't."""
        return self.read(at, len(content)) == (Status.OK, content)

    def holds(self, content: bytes) -> bool:
        return bool(self.image.raw == content)

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


BLOCKS = 1024
"""The least that a card of high capacity can say it has."""

CONTENT = np.random.default_rng(0).bytes(BLOCKS * BLOCK)
FOREVER = 1 << 20
MOST_BYTES = 200_000
"""Most bytes of waiting, in all tries of a transfer of a few blocks; a millisecond is 10 bytes."""

SETTINGS = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module", params=quick(1, ["streamed", "in blocks"]))
def line(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Line:
    flags = ("-DSTORAGE_STREAMED",) if request.param == "streamed" else ()
    return compiled(tmp_path_factory.mktemp("line"), *flags)


def opened(line: Line, content: bytes = CONTENT, **options: int) -> Line:
    line.card(content, **options)  # type: ignore[arg-type]
    assert line.open() == Status.OK
    return line


places = st.tuples(st.integers(0, 9 * BLOCK), st.integers(1, 5 * BLOCK)).map(
    lambda pair: (pair[0], pair[1])
)


@SETTINGS
@given(place=places, high=st.booleans(), block=st.integers(0, 300), loops=st.integers(0, 50))
def test_reads_what_is_there(
    line: Line, place: tuple[int, int], high: bool, block: int, loops: int
) -> None:
    at, size = place
    opened(line, high_capacity=high, idle_loops=loops, command=2 * block, block=block)
    assert line.program.storage_blocks() == BLOCKS
    assert line.reads(at, CONTENT[at : at + size])


@SETTINGS
@given(place=places, high=st.booleans(), block=st.integers(0, 300))
def test_writes_what_it_is_told_and_nothing_beside_it(
    line: Line, place: tuple[int, int], high: bool, block: int
) -> None:
    at, size = place
    opened(line, high_capacity=high, command=2 * block, block=block)
    content = bytes(255 - byte for byte in CONTENT[at : at + size])
    assert line.write(at, content) == Status.OK
    assert line.holds(CONTENT[:at] + content + CONTENT[at + size :])
    assert line.reads(at, content)


def test_a_card_of_version_1_and_what_lies_beyond_its_end(line: Line) -> None:
    opened(line, CONTENT[: 64 * BLOCK], high_capacity=False, version=1)
    assert line.program.storage_blocks() == 64
    assert line.reads(63 * BLOCK, CONTENT[63 * BLOCK : 64 * BLOCK])
    for at, size in ((64 * BLOCK, 1), (63 * BLOCK + 1, BLOCK)):
        assert line.read(at, size)[0] == Status.FAILED
        assert line.write(at, bytes(size)) == Status.FAILED
    assert line.holds(CONTENT[: 64 * BLOCK])


READ_FAULTS = (Fault.WRONG_BYTE, Fault.WRONG_CHECK, Fault.SHORT, Fault.ERROR_TOKEN, Fault.NO_TOKEN)
WRITE_FAULTS = (Fault.WRONG_CHECK, Fault.WRITE_ERROR, Fault.BUSY, Fault.BAD_STATUS)
FAULTS = [(fault, False) for fault in READ_FAULTS] + [(fault, True) for fault in WRITE_FAULTS]


@pytest.mark.parametrize("after", [0, 2])
@pytest.mark.parametrize(("fault", "writes"), FAULTS)
def test_tries_again_what_came_wrong_and_gives_up_in_the_end(
    line: Line, fault: Fault, writes: bool, after: int
) -> None:
    at, size, zeros = BLOCK if writes else 100, 4 * BLOCK, bytes(4 * BLOCK)
    for times, expected in ((1, Status.OK), (3, Status.OK), (FOREVER, Status.FAILED)):
        opened(line)
        line.fault(fault, after, times)
        before = line.passed()
        status, found = (line.write(at, zeros), b"") if writes else line.read(at, size)
        assert status == expected and line.passed() - before < MOST_BYTES
        if expected == Status.OK and writes:
            assert line.holds(CONTENT[:at] + zeros + CONTENT[at + size :])
        elif expected == Status.OK:
            right = found == CONTENT[at : at + size]
            assert right


@SETTINGS
@given(
    flips=st.lists(
        st.tuples(st.integers(0, 3000), st.sampled_from([1 << n for n in range(8)]), st.booleans()),
        min_size=1, max_size=4,
    ),
    writes=st.booleans(),
)  # fmt: skip
def test_flipped_bits_are_never_accepted(
    line: Line, flips: list[tuple[int, int, bool]], writes: bool
) -> None:
    """Wherever they hit: a command, its answer, a token, the data, a status."""
    opened(line, block=5)
    for number, mask, to_card in flips:
        line.flip(number, mask, to_card)
    content = bytes(range(256)) * 8
    if writes:
        if line.write(BLOCK, content) == Status.OK:
            assert line.holds(CONTENT[:BLOCK] + content + CONTENT[BLOCK + len(content) :])
    else:
        status, found = line.read(BLOCK, len(content))
        right = found == CONTENT[BLOCK : BLOCK + len(content)]
        assert right or status == Status.FAILED


@SETTINGS
@given(flips=st.lists(st.tuples(st.integers(0, 400), st.booleans()), max_size=3))
def test_bits_flipped_while_it_is_found(line: Line, flips: list[tuple[int, bool]]) -> None:
    line.card(CONTENT, idle_loops=3)
    for number, to_card in flips:
        line.flip(number, 0x20, to_card)
    if line.open() == Status.OK:
        assert line.program.storage_blocks() == BLOCKS
        assert line.reads(700, CONTENT[700:800])


@SETTINGS
@given(answers=st.binary(min_size=1, max_size=2000), late=st.booleans(), writes=st.booleans())
def test_any_answers_come_to_an_end(line: Line, answers: bytes, late: bool, writes: bool) -> None:
    line.card(CONTENT)
    if late:
        assert line.open() == Status.OK
        line.noise(answers)
        status = line.write(512, bytes(2048)) if writes else line.read(512, 2048)[0]
        assert status == Status.FAILED
    else:
        line.noise(answers)
        assert line.open() == Status.FAILED
        assert line.program.storage_blocks() == 0
        assert line.read(0, 1)[0] == Status.FAILED
    assert line.passed() < 2 * MOST_BYTES


@pytest.mark.parametrize("writes", [False, True])
def test_a_card_that_is_taken_away_or_never_ready(line: Line, writes: bool) -> None:
    opened(line)
    line.fault(Fault.GONE, 2)
    content = bytes(4 * BLOCK)
    status = line.write(0, content) if writes else line.read(0, len(content))[0]
    assert status == Status.FAILED and line.passed() < MOST_BYTES
    assert line.open() == Status.FAILED
    line.card(CONTENT, idle_loops=1 << 30)
    assert line.open() == Status.FAILED


def test_checks_are_those_of_the_specification(line: Line) -> None:
    """4.5: CMD0 ends with 0x95, 512 bytes of 0xFF have the check 0x7FA1."""
    assert line.program.line_crc7(bytes([0x40, 0, 0, 0, 0]), 5) | 1 == 0x95
    assert line.program.line_crc16(b"\xff" * BLOCK, BLOCK) == 0x7FA1
