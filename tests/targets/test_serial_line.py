"""Damaged frames; a line that drops, doubles and changes bytes: every answer is right."""

import os
import shutil
import struct
import subprocess
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware, Uart
from pipeline.runner import replay, verbs
from pipeline.targets import cortex_m_board, device, flash, protocol, simavr
from pipeline.targets.protocol import Command, FrameError, Status
from pipeline.targets.serial_line import SILENCES, Board, Line
from pipeline.targets.toolchain import Size
from tests.boards import node
from tests.codegen.int8.support import frames, network
from tests.programs import program
from tests.targets.conftest import expected, needs_avr
from tests.targets.cortex_m import board_named, built, needs_arm, simulated
from tests.targets.line import Machine, Noise, Receiver, Terminal


def reply_frame(command: int, status: int, payload: bytes = b"") -> bytes:
    return protocol.frame(bytes([command, status]) + payload)


def test_the_check_is_crc16_x25() -> None:
    """0x906E is the catalogue's check value of CRC-16/X-25 over "123456789"."""
    assert protocol.crc16(b"123456789") ^ 0xFFFF == 0x906E


@given(st.binary(max_size=300))
def test_a_check_run_over_a_whole_frame_leaves_the_good_value(inside: bytes) -> None:
    fcs = struct.pack("<H", protocol.crc16(inside) ^ 0xFFFF)
    assert protocol.crc16(inside + fcs) == 0xF0B8  # RFC 1662 appendix C.2
    plain = protocol.frame(inside)[1:-1].replace(b"\x7d\x5e", b"\x7e").replace(b"\x7d\x5d", b"\x7d")
    assert plain == inside + fcs


@given(st.integers(0, 255), st.sampled_from(Status), st.binary(max_size=300))
def test_what_is_framed_is_decoded(command: int, status: Status, payload: bytes) -> None:
    (reply,) = protocol.replies(reply_frame(command, status, payload))
    assert (reply.command, reply.status, reply.payload) == (command, status, payload)


@pytest.mark.ci
@given(st.binary(min_size=1, max_size=60), st.data())
def test_a_request_in_pieces(payload: bytes, data: st.DataObject) -> None:
    """The first have so many bytes of the payload, flags and escapes among them, and no more."""
    ends = sorted(data.draw(st.sets(st.integers(0, len(payload)))))
    found = protocol.pieces(Command.INFER, payload, ends)
    assert b"".join(found) == protocol.encode(Command.INFER, payload)
    for count, end in enumerate(ends, 1):
        plain = b"".join(found[:count])[1:]
        plain = plain.replace(b"\x7d\x5e", b"\x7e").replace(b"\x7d\x5d", b"\x7d")
        assert plain == bytes([Command.INFER]) + payload[:end]


@given(st.binary(max_size=40), st.data())
def test_damage_of_up_to_16_bits_in_a_row_is_noticed(payload: bytes, data: st.DataObject) -> None:
    """Any burst not longer than the check is detected for certain, so no luck is involved."""
    inside = bytes([Command.INFER, Status.OK]) + payload
    plain = inside + struct.pack("<H", protocol.crc16(inside) ^ 0xFFFF)
    start = data.draw(st.integers(0, 8 * len(plain) - 16))
    burst = data.draw(st.integers(1, 0xFFFF))
    damaged = (int.from_bytes(plain, "little") ^ burst << start).to_bytes(len(plain), "little")
    escaped = damaged.replace(b"\x7d", b"\x7d\x5d").replace(b"\x7e", b"\x7d\x5e")
    with pytest.raises(FrameError, match="damaged"):
        protocol.decode(escaped)


@pytest.mark.parametrize("inside", [b"", b"F", b"F\x00\x00", b"F\x00\x11\x22\x7d"])
def test_short_replies_are_noticed(inside: bytes) -> None:
    with pytest.raises(FrameError, match="cut short"):
        protocol.decode(inside)


def test_replies_of_another_version_are_noticed() -> None:
    with pytest.raises(FrameError, match="another version"):
        protocol.replies(reply_frame(Command.INFER, 99))
    with pytest.raises(FrameError, match="protocol 1, this is 2"):
        protocol.identity(struct.pack("<HIHB", 1, 784, 10, 2))
    with pytest.raises(FrameError, match="13 expected"):
        protocol.identity(b"\x02\x00")


def test_a_refusal_says_what_was_refused_and_why() -> None:
    for command, status, said in (
        (Command.INFER, Status.BAD_CRC, "refused infer: bad_crc"),
        (Command.INFER, Status.CORRUPT, "overwritten"),
        (Command.INFER, Status.NO_PARAMETERS, "no_parameters .load this network's parameters"),
        (Command.REPORT, Status.OK, "refused infer"),
    ):
        (reply,) = protocol.replies(reply_frame(command, status))
        with pytest.raises(FrameError, match=said):
            protocol.accept(reply, Command.INFER)


@pytest.mark.parametrize("bytes_each", [1, 2, 4])
def test_outputs_have_the_firmwares_own_type(bytes_each: int) -> None:
    who = protocol.identity(struct.pack("<HIHBI", 2, 784, 3, bytes_each, 0))
    values = np.array([-1, 0, 100], who.dtype)
    got = protocol.outputs(values.tobytes(), who)
    assert got.dtype.itemsize == bytes_each
    np.testing.assert_array_equal(got, values)
    with pytest.raises(FrameError, match="of outputs"):
        protocol.outputs(values.tobytes()[:-1], who)


def test_the_report_is_read_in_order() -> None:
    got = protocol.report(struct.pack("<IHH", 960_000, 40, 60))
    assert (got.invoke_cycles, got.stack_bytes, got.untouched_bytes) == (960_000, 40, 60)


BAUD = 115200
IDENTITY = struct.pack("<HIHBI", protocol.VERSION, 16, 3, 2, 0)
REPORT = struct.pack("<IHH", 1234, 56, 789)


def firmware(compute: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """A stand-in that takes 16 B."""
    receiver = Receiver(16, compute)
    told = {Command.IDENTIFY: IDENTITY, Command.REPORT: REPORT}

    def answer(data: bytes) -> bytes:
        said = b""
        for reply in receiver.feed(data):
            whole = reply.status is protocol.Status.OK
            payload = told.get(reply.command, reply.payload) if whole else b""  # type: ignore[call-overload]
            said += protocol.frame(bytes([reply.command, reply.status]) + payload)
        return said

    return answer


def backwards(given: bytes) -> bytes:
    return given[:6][::-1]


def waited_for(every: int) -> Callable[[bytes], bytes]:
    """A stand-in that says when the host may go on within an input."""
    answer, inside = firmware(backwards), bytearray()

    def told(data: bytes) -> bytes:
        words = b""
        for byte in data:
            inside.append(byte)
            if byte == protocol.FLAG:
                inside.clear()
            count = len(inside) - inside.count(protocol.ESCAPE) - 1
            ends = byte != protocol.ESCAPE and 0 < count < 16 and count % every == 0
            if inside[:1] == bytes([Command.INFER]) and ends:
                words += bytes([protocol.READY])
        return words + answer(data)

    return told


@pytest.mark.parametrize(("rate", "wait_bytes"), [(0.0, 0), (0.005, 0), (0.0, 4), (0.005, 4)])
def test_every_answer_belongs_to_its_request(rate: float, wait_bytes: int) -> None:
    """Also where the host waits within an input."""
    noise, rng = Noise(rate), np.random.default_rng(1)
    answer = waited_for(wait_bytes) if wait_bytes else firmware(backwards)
    with Terminal(answer, noise) as terminal, Line(terminal.port, BAUD) as line:
        # on a line without noise nothing is asked again, however late the answer
        board = Board(line, patience_s=0.02 if rate else 60.0, wait_bytes=wait_bytes)
        assert board.connect() == protocol.Identity(16, 3, 2, 0)
        for _ in range(100):
            given = rng.bytes(16)
            assert board.ask(Command.INFER, given) == backwards(given)
        assert board.ask(Command.REPORT) == REPORT
    assert (board.repeated > 0) == (rate > 0)
    assert all(noise.harmed.values()) == (rate > 0)


def test_a_late_answer_is_not_taken_for_the_next() -> None:
    """Every third answer waits for the next request: then what was asked again comes twice."""
    held, calls = [b""], [0]
    answer = firmware(backwards)

    def late(data: bytes) -> bytes:
        calls[0] += 1
        said = held[0] + answer(data)
        held[0] = said if calls[0] % 3 == 1 else b""
        return b"" if held[0] else said

    with Terminal(late, Noise(0)) as terminal, Line(terminal.port, BAUD) as line:
        board = Board(line, patience_s=0.05)
        first, second = bytes(range(16)), bytes(range(100, 116))
        for given in (first, second, first):
            assert board.ask(Command.INFER, given) == backwards(given)
    assert board.repeated


def test_what_never_answers_is_one_line(tmp_path: Path) -> None:
    with Terminal(lambda _: b"", Noise(0)) as terminal, Line(terminal.port, BAUD) as line:
        board = Board(line, patience_s=0.001)
        with pytest.raises(FrameError, match="nobody answers at the serial line"):
            board.connect()
        with pytest.raises(FrameError, match="has stopped answering: reset it"):
            board.ask(Command.REPORT)
    other = firmware(backwards)

    def deaf(data: bytes) -> bytes:
        return b"" if bytes([protocol.FLAG, Command.INFER]) in data else other(data)

    with (
        Terminal(deaf, Noise(0)) as terminal,
        Line(terminal.port, BAUD) as line,
        pytest.raises(FrameError, match=f"no whole answer to infer, {SILENCES} times none at all"),
    ):
        Board(line, patience_s=0.01).ask(Command.INFER, bytes(16))
    for port, said in ((tmp_path / "none", "No such file"), (tmp_path / "file", "no serial port")):
        (tmp_path / "file").touch()
        with pytest.raises(ThimbleError, match=said):
            Line(str(port), BAUD)
    with pytest.raises(ThimbleError, match=r"hardware\.baud=12345: this computer has no such rate"):
        Line(str(tmp_path), 12345)


def test_a_refusal_of_a_whole_request_is_not_asked_again() -> None:
    refusal = protocol.frame(bytes([Command.INFER, protocol.Status.CORRUPT]))
    with Terminal(lambda _: refusal, Noise(0)) as terminal, Line(terminal.port, BAUD) as line:
        board = Board(line, patience_s=5.0)
        with pytest.raises(FrameError, match="refused infer: corrupt"):
            board.ask(Command.INFER, bytes(16))
    assert not board.repeated


@needs_avr
@pytest.mark.parametrize("rate", [0.0, 0.002])
def test_an_uno_behind_the_line(
    rate: float, built: tuple[Path, Size], arduino: Hardware, shim: Path
) -> None:
    images = np.random.default_rng(5).integers(0, 256, (12, 4, 4, 1)).astype(np.uint8)
    elf, noise = built[0] / "firmware.elf", Noise(rate, 3)
    with (
        simavr.Chip(shim, elf, arduino, built[1].sections) as chip,
        Terminal(lambda data: chip.exchange(data).reply, noise) as terminal,
    ):
        runs = flash.answers(built[0], arduino, terminal.port, images, patience_s=0.3)
    np.testing.assert_array_equal(runs.outputs, expected(images))
    assert runs.stack_bytes and (runs.invoke_cycles > 0).all()
    assert any(noise.harmed.values()) == (rate > 0)


def fake_openocd(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A flasher that notes how it was called."""
    program(folder / "bin", "openocd", f'echo "$@" > {folder}/said')
    monkeypatch.setenv("PATH", f"{folder}/bin{os.pathsep}{os.environ['PATH']}")
    return folder / "said"


QEMU = ("qemu-system-arm", "-display", "none", "-monitor", "none", "-parallel", "none", "-kernel")
NRF51 = {
    "uart": {**node("nrf52840_dk")["uart"], "hz": 16_000_000},
    "sram_bytes": 16_384, "flash_bytes": 262_144, "regions": [
        {"name": "sram", "start": 0x20000000, "bytes": 16_384},
        {"name": "flash", "start": 0, "bytes": 262_144, "kind": "rom"},
    ],
}  # fmt: skip


def rp2040js(folder: Path) -> tuple[object, ...]:
    """The command, without the firmware."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("node or npm is not installed: sudo apt-get install nodejs npm")
    install = ["npm", "install", "--silent", "--prefix", str(folder), "rp2040js@1.4.1"]
    if subprocess.run(install, capture_output=True, check=False).returncode:
        pytest.skip("npm does not fetch rp2040js 1.4.1")
    return "node", Path(__file__).with_name("rp2040.cjs"), folder / "node_modules" / "rp2040js"


@needs_arm
@pytest.mark.ci
@pytest.mark.parametrize(
    ("board", "changes", "machine"),
    [
        ("nucleo_f446re", {}, ("netduinoplus2", "-serial", "null")),  # USART2 is the second
        ("arduino_zero", NRF51, ("microbit",)),
        ("pico", {}, ()),
    ],
)
def test_a_flashed_board_behind_the_line(
    board: str, changes: dict[str, object], machine: tuple[str, ...], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The board's very firmware: on QEMU's STM32F405, whose UART and memory are the F446's; for
    the UART of an nRF52 on an nRF51; on rp2040js, which knows nothing of our model of cycles."""
    graph, hardware = network(), board_named(board, **changes)
    hardware = replace(hardware, flasher="openocd {hex}")
    size = built(tmp_path, graph, hardware)
    given = frames(graph, 6)
    images = np.ascontiguousarray(given.astype(str(graph.tensors[graph.input].dtype)))
    said, noise = fake_openocd(tmp_path, monkeypatch), Noise(0.001, 7)
    build = tmp_path / "build"
    command = (*QEMU, build / "board.elf", "-M", *machine, "-serial", "stdio")
    if not machine:
        command = (*rp2040js(tmp_path), build / "firmware.bin")
    monkeypatch.setattr(flash, "PATIENCE_S", 0.5)
    with Machine(*command) as behind, Terminal(behind.answer, noise, behind.source) as terminal:
        target = {"name": "flash", "images": 6, "port": terminal.port}
        report, arrays = device.measure(
            target, build, asdict(size), hardware, images.view(np.uint8)
        )
    assert said.read_text() == "firmware.hex\n"
    found = arrays["device_outputs"].view(str(graph.tensors[graph.output].dtype))
    np.testing.assert_array_equal(found.astype(np.int64), graph.evaluate(given).reshape(6, -1))
    assert report["images"] == 6 and 0 < report["stack_bytes"] <= size.stack_bound_bytes
    assert any(noise.harmed.values())
    if board == "pico":
        timing = replace(hardware.flash_timing, wait_states=0)
        runs = simulated(tmp_path, graph, replace(hardware, flash_timing=timing), size, given)
        assert runs.modelled_cycles is not None
        modelled = runs.modelled_cycles["median"]
        assert report["invoke_cycles"]["median"] == pytest.approx(modelled, rel=0.02)


@pytest.mark.parametrize(
    ("layout", "hz", "baud", "found"),
    [
        ("isr", 16_000_000, 115_200, 139),
        ("sr", 4_000_000, 9600, 417),
        ("pl011", 12_000_000, 115_200, 6 * 64 + 33),  # RP2040's data sheet, 4.2.3
        ("nrf", 16_000_000, 115_200, 0x1D7E),  # nRF52840's product specification, 6.33.10
        ("sercom", 8_000_000, 115_200, 65_536 - 50_437),
        ("lpuart", 24_000_000, 115_200, 13),
    ],
)
def test_a_rate_is_the_nearest(layout: Any, hz: int, baud: int, found: int) -> None:
    assert cortex_m_board.divisor(Uart(layout, hz=hz), baud) == found
    assert cortex_m_board.divisor(Uart(layout, hz=1, divided_hz=hz), baud) == found
    with pytest.raises(ThimbleError, match=r"hardware\.baud=9216000: .* has no such rate"):
        cortex_m_board.divisor(Uart(layout, hz=hz), 9_216_000)


@pytest.mark.ci
@needs_arm
@pytest.mark.skipif(shutil.which("arm-none-eabi-objcopy") is None, reason="no objcopy")
def test_a_dry_run_checks_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor does that of the verb, of a run that is built."""
    hardware = board_named("nucleo_f767zi")
    size = built(tmp_path, network(), hardware)
    said = fake_openocd(tmp_path, monkeypatch)
    images = np.zeros((2, *network().tensors[network().input].shape), np.uint8)
    target = {"name": "flash", "images": 2, "port": "", "dry_run": True}
    report, arrays = device.measure(target, tmp_path / "build", asdict(size), hardware, images)
    assert not len(arrays["device_outputs"])
    written = report["flasher"]
    assert written["dry_run"] and "verify reset exit" in written["command"]
    assert "2,097,152 B of flash from 0x8000000 on" in written["writes"]
    record = SimpleNamespace(config=lambda _: {"hardware": node("nucleo_f767zi")})
    monkeypatch.setattr(replay, "read", lambda _: record)
    others = "pyocd load -t {part} {hex}", "st-flash --format ihex write {hex}"
    for each in (hardware.flasher, *others):
        words = "target.dry_run=true", f'hardware.flasher="{each}"'
        assert verbs.called(["flash", str(tmp_path), *words]) == 0 and not said.exists()
        printed = capsys.readouterr().out
        assert each.format(part=hardware.part, hex="firmware.hex") in printed
        assert written["writes"] in printed
    with pytest.raises(ThimbleError, match=r"leave out target\.images=3; have target\.port=PORT"):
        verbs.called(["flash", str(tmp_path), "target.images=3"])
