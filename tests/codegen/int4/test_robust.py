"""Generated firmware on a line at full speed, among damaged frames, after any power-on."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pipeline import ihex
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.strategies.in_place import Herringbone
from pipeline.targets import host, protocol, toolchain
from pipeline.targets.protocol import Command, Reply, Status
from pipeline.targets.simavr import Chip, check
from pipeline.targets.toolchain import Size
from tests.codegen.support import frames, write
from tests.strategies.chains import Chain, mnist
from tests.targets.conftest import load_hardware, needs_avr
from tests.targets.cortex_m import built
from tests.targets.line import Receiver, damaged
from tests.tiers import quick

pytestmark = needs_avr
FASTEST_BAUD, BYTE_CYCLES = 1_000_000, 160
"""The second highest rate of the UART at 16 MHz. At the highest, 80 cycles a byte, no firmware that
checks and pools each byte as it comes could keep up."""


@dataclass(frozen=True)
class Firmware:
    """A network as it is built, and the frames it is asked with."""

    graph: Graph
    hardware: Hardware
    folder: Path
    size: Size

    @property
    def parameters(self) -> bytes:
        file = self.folder / "parameters.hex"
        return ihex.flash_image(file) if file.exists() else b""

    @property
    def load(self) -> bytes:
        """The frame that has to come first, where there is one."""
        return protocol.encode(Command.LOAD, self.parameters) if self.parameters else b""

    def ask(self, frame: np.ndarray) -> bytes:
        return protocol.encode(Command.INFER, frame.astype(np.uint8).tobytes())

    def answer(self, frame: np.ndarray) -> bytes:
        return self.graph.evaluate(frame[None]).astype("<i2").tobytes()

    def chip(self, shim: Path, **options: object) -> Chip:
        elf = self.folder / "firmware.elf"
        return Chip(shim, elf, self.hardware, self.size.sections, **options)  # type: ignore[arg-type]


def outputs(stream: bytes) -> list[bytes]:
    """The payloads of the accepted inferences among the replies in ``stream``."""
    accepted = (r for r in protocol.replies(stream) if r.status is Status.OK)
    return [reply.payload for reply in accepted if reply.command == Command.INFER]


Build = Callable[..., Firmware]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Builds a network once for each place of the weights and each rate of the line."""

    @cache
    def made(name: str, weights_in: str, baud: int = FASTEST_BAUD) -> Firmware:
        small = Chain((8, 8, 1), "uint8").average("pooled").conv("conv", 3, 2).dense("logits", 2)
        graph = (mnist() if name == "mnist" else small).graph()
        hardware = load_hardware(weights_in=weights_in, baud=baud)
        folder = tmp_path_factory.mktemp(f"{name}-{weights_in}")
        size = built(folder, graph, hardware, Herringbone("slots").plan(graph, hardware))
        return Firmware(graph, hardware, folder / "build", size)

    return made


def special(graph: Graph) -> np.ndarray:
    """Frames of flags and of escapes, which take two bytes each on the line, and other ones."""
    given = frames(graph, 6)
    given[2], given[3] = 0x7E, 0x7D
    return given


@pytest.mark.parametrize("weights_in", ["sram", "flash", "stream"])
def test_bytes_without_a_gap_at_the_highest_rate(weights_in: str, build: Build, shim: Path) -> None:
    """No byte is lost, the stack stays within its bound, and nothing is written below it."""
    firmware = build("mnist", weights_in)
    with firmware.chip(shim, line="paced") as chip:
        if firmware.load:
            (reply,) = protocol.replies(chip.exchange(firmware.load).reply)
            assert reply.status is Status.OK
        for frame in special(firmware.graph):
            done = chip.exchange(firmware.ask(frame))
            check(done)
            assert outputs(done.reply) == [firmware.answer(frame)]
        assert done.byte_cycles == BYTE_CYCLES and done.overruns == 0
        assert done.stack_bytes == firmware.size.stack_bound_bytes
        report = protocol.report(protocol.accept(chip.ask(Command.REPORT)[0], Command.REPORT))
    statics = firmware.size.statics_bytes
    assert report.untouched_bytes == 2048 - statics - done.stack_bytes > 0


def test_a_line_that_is_too_fast_gives_refusals(build: Build, shim: Path) -> None:
    firmware = build("mnist", "stream", 2 * FASTEST_BAUD)
    lost = 0
    with firmware.chip(shim, line="paced") as chip:
        for frame in special(firmware.graph):
            done = chip.exchange(firmware.load + firmware.ask(frame))
            lost += done.overruns
            assert outputs(done.reply) == []
            assert {r.status for r in protocol.replies(done.reply)} <= {
                Status.TRUNCATED, Status.BAD_CRC, Status.NO_PARAMETERS, Status.UNKNOWN,
            }  # fmt: skip
            assert (done.overlap_bytes, done.stray_stores) == (0, 0)
        assert lost > 1000 and done.stack_bytes <= firmware.size.stack_bound_bytes


@pytest.mark.parametrize("beyond", [0, 2])
def test_the_canary_is_the_first_that_a_stack_too_deep_meets(
    beyond: int, tmp_path: Path, shim: Path, build: Build
) -> None:
    """With a larger arena the stack ends where the statics do, or in the canary's two bytes."""
    firmware = build("mnist", "flash")
    room = 2048 - firmware.size.sram_bytes + beyond
    files = {
        file.name: file.read_text()
        for file in (firmware.folder.parent / "generated").glob("*.[ch]")
    }
    arena = re.search(r"NN_ARENA_BYTES (\d+)", files["model.h"])
    assert arena
    header = files["model.h"].replace(arena[0], f"NN_ARENA_BYTES {int(arena[1]) + room}")
    write(tmp_path, {**files, "model.h": header})
    size = toolchain.build(tmp_path, tmp_path, firmware.hardware)
    assert size.sram_bytes == 2048 + beyond
    frame = frames(firmware.graph, 3)[2]
    with Chip(shim, tmp_path / "firmware.elf", firmware.hardware, size.sections) as chip:
        done = chip.exchange(firmware.ask(frame))
    (reply,) = protocol.replies(done.reply)
    assert done.overlap_bytes == beyond
    assert reply.status is (Status.CORRUPT if beyond else Status.OK)


@pytest.mark.parametrize("weights_in", ["sram", "flash", "stream"])
def test_what_memory_held_at_power_on_makes_no_difference(
    weights_in: str, build: Build, shim: Path
) -> None:
    """Registers, statics, arena, stack: other garbage each time. Not even a cycle differs."""
    firmware = build("mnist", weights_in)
    given = frames(firmware.graph, 3)[1:]
    seen = set()
    for seed in range(8):
        with firmware.chip(shim, line="instant", seed=seed) as chip:
            if firmware.load:
                (refused,) = protocol.replies(chip.exchange(firmware.ask(given[0])).reply)
                assert refused.status is Status.NO_PARAMETERS
                chip.exchange(firmware.load)
            done = [chip.exchange(firmware.ask(frame)) for frame in given]
            assert [outputs(d.reply) for d in done] == [[firmware.answer(f)] for f in given]
            seen.add(tuple((d.feed_cycles, d.invoke_cycles, d.stack_bytes) for d in done))
    assert len(seen) == 1


def harmed(firmware: Firmware, count: int, seed: int) -> Iterator[tuple[bytes, bytes, np.ndarray]]:
    """``count`` times (a damaged frame, what has to be loaded again, a frame to ask)."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        frame = rng.integers(0, 256, firmware.graph.tensors[firmware.graph.input].shape)
        victim = firmware.load if firmware.load and number % 2 else firmware.ask(frame)
        yield damaged(victim, rng), firmware.load, frame


def receiver(firmware: Firmware) -> Receiver:
    shape = firmware.graph.tensors[firmware.graph.input].shape
    return Receiver(
        int(np.prod(shape)),
        lambda sent: firmware.answer(np.frombuffer(sent, np.uint8).reshape(shape)),
        firmware.parameters,
    )


def bare(replies: list[Reply]) -> list[Reply]:
    """Without the payloads of identify and report."""
    return [r if r.command == Command.INFER else replace(r, payload=b"") for r in replies]


@pytest.mark.parametrize("weights_in", quick(0, ["stream", "sram"], ci=1))
def test_thousands_of_damaged_frames_on_the_host(
    weights_in: str, build: Build, tmp_path: Path
) -> None:
    """With ASan and UBSan. Each reply is what frame.h says; whole frames are always answered."""
    firmware = build("small", weights_in)
    toolchain.build_host(firmware.folder.parent / "generated", tmp_path / "host", sanitize=True)
    stream, model, wanted = bytearray(), receiver(firmware), []
    for bad, load, frame in harmed(firmware, 2000, 1):
        sent = bad + firmware.ask(frame) + load + firmware.ask(frame)
        replies = model.feed(sent)
        assert replies[-1] == Reply(Command.INFER, Status.OK, firmware.answer(frame))
        stream += sent
        wanted += replies
    assert bare(protocol.replies(host.talk(tmp_path / "host", bytes(stream)))) == wanted
    cards = {Status.NO_CARD, Status.OTHER_CARD, Status.CARD_FAILED}
    cards |= {Status.NO_KEY, Status.OTHER_KEY, Status.CARD_DAMAGED, Status.INPUT_LOST}
    never = {Status.INCOMPLETE, Status.CORRUPT, *cards}
    never |= set() if load else {Status.NO_PARAMETERS}
    assert {reply.status for reply in wanted} == set(Status) - never


@pytest.mark.parametrize("weights_in", ["sram", "stream"])
def test_damage_on_a_line_that_does_not_wait(weights_in: str, build: Build, shim: Path) -> None:
    """Lose what arrives while the firmware computes or answers, as on a real line. A flag ends what
    is left of a frame, and once that has been answered the next one works."""
    firmware = build("small", weights_in)
    with firmware.chip(shim, line="paced") as chip:
        for bad, load, frame in harmed(firmware, 300, 3):
            for sent in (bad, b"\x7e", load, firmware.ask(frame)):
                done = chip.exchange(sent)
            assert outputs(done.reply) == [firmware.answer(frame)]
            assert (done.overlap_bytes, done.stray_stores) == (0, 0)
    assert done.stack_bytes <= firmware.size.stack_bound_bytes


def test_damaged_parameters_are_refused_and_the_next_ones_work(build: Build, shim: Path) -> None:
    """Nothing is computed with parameters that are not complete and right; whole ones mend it."""
    firmware = build("mnist", "stream")
    content = firmware.parameters
    frame = frames(firmware.graph, 3)[2]
    whole, ask = protocol.encode(Command.LOAD, content), firmware.ask(frame)
    foreign = protocol.encode(Command.LOAD, bytes([content[0] ^ 1]) + content[1:])
    refused, done = (ask, Status.NO_PARAMETERS), ((whole, Status.OK), (ask, Status.OK))
    with firmware.chip(shim, line="paced") as chip:
        for bad, status in (
            (whole[:700] + bytes([whole[700] ^ 0x40]) + whole[701:], Status.BAD_CRC),
            (whole[:700] + b"\x7e", Status.TRUNCATED),
            (protocol.encode(Command.LOAD, content[:-1]), Status.TRUNCATED),
            (protocol.encode(Command.LOAD, content + b"\0"), Status.OVERSIZED),
            (foreign, Status.NO_PARAMETERS),
        ):
            for stream, expected in ((bad, status), refused, *done, (bad, status), refused, *done):
                (reply,) = protocol.replies(chip.exchange(stream).reply)
                assert reply.status is expected
            assert reply.payload == firmware.answer(frame)
        check(chip.exchange(ask))
