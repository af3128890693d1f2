"""Plans that swap, as C with a card, compiled natively and run; boards whose card is sealed, and
what becomes of a card that is wrong; and a sealed network on a simulated Cortex-M7 whose card lies
(``fixture/faults.c``)."""

import json
import re
import shutil
import struct
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Self

import numpy as np

from pipeline.codegen import generate
from pipeline.codegen.card.sealed import Piece, Sealed
from pipeline.codegen.checks import arena_bytes
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.hardware import Hardware
from pipeline.plan.pieces import transferred
from pipeline.plan.repair import REPAIR, Repair
from pipeline.plan.vocabulary import Plan
from pipeline.sealed_image import MANIFEST, seal
from pipeline.sealing import Security
from pipeline.strategies.swap import Swap
from pipeline.targets import host, machines, protocol, qemu, toolchain
from pipeline.targets.card import CHIP_KEY, NAME
from pipeline.targets.protocol import Command, Reply, Status
from pipeline.targets.toolchain import Size
from tests.codegen.support import Native, frames
from tests.strategies.swap import nets
from tests.strategies.swap.nets import Chain, random_chain
from tests.targets.cortex_m import board_named, built


def planned(graph: Graph, sram_bytes: int, **keys: object) -> Plan:
    """In so much, or in as much as it takes."""
    plan = Swap(**keys).plan(graph, nets.board(sram_bytes))  # type: ignore[arg-type]
    memories = [
        replace(m, bytes=max(m.bytes, arena_bytes(plan))) if m.name == "sram" else m
        for m in plan.memories
    ]
    return replace(plan, memories=tuple(memories))


def sources(graph: Graph, plan: Plan) -> dict[str, str]:
    return generate(graph, plan, nets.board(arena_bytes(plan)), {})


def swapped(folder: Path, graph: Graph, plan: Plan) -> Native:
    return Native(folder, graph, plan, files=sources(graph, plan))


def elements(graph: Graph) -> int:
    return sum(tensor.size for tensor in graph.tensors.values())


def large(shape: tuple[int, int, int] = (12, 11, 3), *channels: int) -> Graph:
    """A network whose result is larger than a small arena."""
    chain = Chain("net", shape)
    for count in channels or (16, 48):
        chain.conv(count, 3, 1, 1)
    return chain.graph(np.random.default_rng(0))


def rows() -> Graph:
    """Whose rows are of whole blocks, which go straight to where they belong."""
    return large((9, 16, 32), 32)


def twice(graph: Graph) -> IntArray:
    """Three frames, and the first one again."""
    return frames(graph, 3, seed=1)[[0, 1, 2, 0]]


RESERVE = 4096
KEY = bytes(range(32))
BLOCK = 512


def board(security: Security, tiles_bytes: int) -> Hardware:
    """With so much SRAM for tiles."""
    hardware = board_named("stm32f746g_sd")
    hardware = replace(hardware, card=replace(hardware.card, security=security))
    sram_bytes = (tiles_bytes + 2 * RESERVE + hardware.card.kept_bytes) // 32 * 32
    return replace(hardware, sram_bytes=sram_bytes, stack_reserve_bytes=RESERVE)


@dataclass(frozen=True)
class Program:
    """A network in ``folder``, as stages generate and build leave it."""

    folder: Path
    graph: Graph
    hardware: Hardware
    plan: Plan
    size: Size

    @property
    def build(self) -> Path:
        return self.folder / "build"

    def sealed(self, key: bytes = KEY, salt: bytes = bytes(16)) -> bytes:
        """The image that a card holds."""
        if not self.hardware.card.keyed:
            return (self.build / NAME).read_bytes()
        seal(self.build, key, self.folder / "sealed.img", salt)
        return (self.folder / "sealed.img").read_bytes()

    def pieces(self) -> list[tuple[int, int, int, int]]:
        """List the pieces of weights: number, byte without tags, block, bytes."""
        found = json.loads((self.build / MANIFEST).read_text())["pieces"]
        return [tuple(piece) for piece in found]

    def answers(
        self, image: bytes | None, given: IntArray, key: bytes | None = KEY, again: bool = False
    ) -> list[Reply]:
        """Ask the native program, whose card and chip these are; ``again``: as it was left."""
        chip = self.folder / "chip"
        chip.mkdir(exist_ok=True)
        if not again:
            (chip / "chip.starts").unlink(missing_ok=True)
        for name, content in ((NAME, image), (CHIP_KEY, key)):
            (chip / name).unlink(missing_ok=True)
            if content is not None:
                (chip / name).write_bytes(content)
        program = chip / "host"
        if not program.exists():
            toolchain.build_host(self.folder / "generated", program)
        images = np.ascontiguousarray(given.astype(np.int8)).view(np.uint8)
        stream = b"".join(protocol.encode(Command.INFER, each.tobytes()) for each in images)
        return protocol.replies(host.talk(program, stream))

    def right(self, reply: Reply, given: IntArray) -> bool:
        """Check whether a reply that says it is right is; ``given``: one frame."""
        assert reply.status == Status.OK
        expected = self.graph.evaluate(given[None]).astype(np.int8).tobytes()
        return reply.payload == expected


def program(folder: Path, security: Security, seed: int = 1) -> Program:
    """A random chain in a third of the memory that its tensors take."""
    graph = random_chain(seed)
    hardware = board(security, elements(graph) // 3)
    plan = Swap().plan(graph, hardware)
    return Program(folder, graph, hardware, plan, built(folder, graph, hardware, plan))


def given(graph: Graph, count: int) -> IntArray:
    """Random ones, the last of which are neither dark nor bright."""
    return frames(graph, count + 2)[2:]


FAULTS = Path(__file__).parent / "fixture" / "faults.c"
WRAPPED = (
    *("block_device_open", "block_device_start", "block_device_poll"),
    *("nn_init", "nn_feed", "nn_invoke", "nn_take"),
)
OLDER_SALT, OTHER_KEY = b"an older image's", b"another chip's, of another's own"
MOST_BLOCKS = 8
COMMENT = re.compile(rb"\s*/\*.*?\*/", re.DOTALL)
NOTHING: Mapping[str, Path] = MappingProxyType({})


Kind = IntEnum(
    "Kind",
    "NONE FLIP_READ FLIP_CARD FAIL SHORT_READ FLIP_WRITE LOST_WRITE GONE EXCHANGED OLDER CUT "
    "OTHER_CARD READ_ONLY TRY",
    start=0,
)
Where = IntEnum("Where", "INVOKE INIT CHECK FEED TAKE", start=0)
"""The function whose commands a fault is for."""


Way = IntEnum("Way", "LATE AT_ONCE UNDONE", start=0)
"""Ways for a command to fail: when all has passed, before anything has, or when it should have."""


class Ran(NamedTuple):
    """A command: ``direction`` is 0 of one that reads, 1 that writes, 2 that looks for the card."""

    frame: int
    where: Where
    direction: int
    block: int
    blocks: int


@dataclass(frozen=True)
class Fault:
    """As fixture/faults.c has it."""

    kind: Kind
    command: int = 0
    count: int = 0
    source: int = 0
    target: int = 0
    where: Where = Where.INVOKE

    @property
    def packed(self) -> bytes:
        words = self.kind, self.command, self.count, self.source, self.target, self.where
        return struct.pack("<6I", *words)


@dataclass(frozen=True)
class Faulty:
    """
    Attributes:
        weights: (first block, blocks) of each tile; ``input``: of each piece of the input that is
            read.
        reads, writes: commands of an inference that goes well.
        fed: commands that write an input.
        native: the program that runs, if not the simulated one: the same C, in a fraction of the
            time.
    """

    program: Program
    weights: list[tuple[int, int]]
    input: list[tuple[int, int]]
    reads: int
    writes: int
    fed: int
    native: Path | None = None

    @property
    def firmware(self) -> bytes:
        """The program; of a native one its sources without comments, as compilers differ."""
        if self.native is None:
            return (self.program.build / "firmware.elf").read_bytes()
        sources = sorted((self.program.folder / "generated").glob("*.[ch]"))
        return b"".join(COMMENT.sub(b"", path.read_bytes()) for path in sources)

    def natively(self) -> Self:
        """The same sources, with the card of ``fixture/native``."""
        generated, native = self.program.folder / "generated", FAULTS.parent / "native"
        output = self.program.folder / "native"
        sources = [*generated.glob("*.c"), native / "device.c"]
        names = sorted(str(path) for path in sources if path.name != "file_device.c")
        wraps = [flag for flag in self.program.hardware.toolchain.flags if "--wrap=" in flag]
        command = ["cc", "-std=gnu99", "-O1", "-DNATIVE_FAULTS", *wraps]
        command += [f"-I{native}", f"-I{generated}", *names, "-o", str(output)]
        subprocess.run(command, check=True)
        return replace(self, native=output)

    @property
    def security(self) -> Security:
        return self.program.hardware.card.security

    def others(self) -> list[bytes]:
        """Cards: another network's, an older one of this network, with keys another chip's."""
        another = bytearray(self.program.sealed())
        for block in (0, len(another) // BLOCK - 1):
            another[block * BLOCK + 16] ^= 1  # of the graph's hash
        found = [bytes(another), self.program.sealed(salt=OLDER_SALT)]
        return [*found, self.program.sealed(OTHER_KEY)] if self.keyed else found

    @property
    def keyed(self) -> bool:
        return self.program.hardware.card.keyed

    def commands(self, writes: bool, frames: int) -> int:
        """From the start to the last of so many frames."""
        if writes:
            return frames * (self.fed + self.writes)
        return 2 + (not self.keyed) + frames * self.reads

    def replies(
        self, given: IntArray, faults: Sequence[Fault], folder: Path, begins: bool = True
    ) -> list[Reply]:
        """Reply to inferences with a fault each; ``begins``: chip and card are new, not as left."""
        folder.mkdir(parents=True, exist_ok=True)
        if begins:
            (folder / "chip.starts").unlink(missing_ok=True)
            (folder / CHIP_KEY).write_bytes(KEY)
            (folder / NAME).write_bytes(self.program.sealed())
            (folder / "older.img").write_bytes(self.program.sealed(salt=OLDER_SALT))
            for number, image in enumerate(self.others()):
                (folder / f"other{number}.img").write_bytes(image)
        (folder / "faults").write_bytes(b"".join(fault.packed for fault in faults))
        images = np.ascontiguousarray(given.astype(np.int8)).view(np.uint8)
        stream = b"".join(protocol.encode(Command.INFER, each.tobytes()) for each in images)
        (folder / "requests").write_bytes(stream)
        if self.native:
            with (folder / "requests").open("rb") as given_, (folder / "replies").open("wb") as out:
                program = str(self.native.resolve())
                subprocess.run([program], cwd=folder, stdin=given_, stdout=out, check=True)
            return list(map(decoded, protocol.split((folder / "replies").read_bytes())))
        machine = machines.machine(self.program.hardware).name
        elf = (self.program.build / "firmware.elf").resolve()
        command = [qemu.PROGRAM, "-M", machine, "-kernel", str(elf), "-icount", "shift=0",
                   "-semihosting-config", "enable=on,target=native", "-display", "none",
                   "-monitor", "none", "-serial", "none", "-parallel", "none"]  # fmt: skip
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=1800)
        return list(map(decoded, protocol.split((folder / "replies").read_bytes())))

    def ran(self, folder: Path) -> list[Ran]:
        """All commands of the last run in ``folder``."""
        lines = struct.iter_unpack("<5I", (folder / "commands").read_bytes())
        return [Ran(frame, Where(where), *rest) for frame, where, *rest in lines]


def decoded(part: bytes) -> Reply:
    """With a wrong check the harness says that nn_take failed."""
    try:
        return protocol.decode(part)
    except protocol.FrameError:
        return Reply(Command.INFER, Status.CARD_FAILED, b"")


def faulty(
    folder: Path,
    security: Security,
    seed: int = 1,
    besides: Mapping[str, Path] = NOTHING,
    taken: Graph | None = None,
) -> Faulty:
    """A chain in square tiles, which write what each layer makes.

    Args:
        besides: functions that are wrapped, too, and the C that does it.
        taken: a network whose result is larger than the arena, instead.
    """
    graph = taken or random_chain(seed)
    buffer_bytes = elements(graph) // 8 // 32 * 32
    hardware = board(security, 3008 - RESERVE if taken else elements(graph))
    swap = Swap() if taken else Swap(scheduler="swapnn", buffer_bytes=buffer_bytes)
    plan = swap.plan(graph, hardware)
    places = " ".join(map(str, Repair(plan, graph).possible()))  # all of them, whatever they save
    plan = replace(plan, notes=(*plan.notes, (REPAIR, places)))
    flags = [*hardware.toolchain.flags, *(f"-Wl,--wrap={name}" for name in (*WRAPPED, *besides))]
    tool = replace(hardware.toolchain, flags=tuple(flags))
    more = 2 * MOST_BLOCKS * BLOCK + 512  # what faults.c keeps
    hardware = replace(hardware, toolchain=tool, sram_bytes=hardware.sram_bytes + more)
    generated = folder / "generated"
    generated.mkdir(parents=True)
    for source in (FAULTS, *besides.values()):
        shutil.copyfile(source, generated / source.name)
    program = Program(folder, graph, hardware, plan, built(folder, graph, hardware, plan))
    sealed = Sealed.of(graph, plan, hardware)
    if sealed is None:
        return Faulty(program, [], [], 0, 0, 0)
    input_buffer = next(
        b for b in map(plan.buffer.__getitem__, plan.resident) if b.tensor == graph.input
    )
    context = sealed.context(input_buffer, Repair.noted(plan, graph))

    def places(pieces: Sequence[Piece]) -> list[tuple[int, int]]:
        return [(piece.block, sealed.cut.blocks(piece.bytes)) for piece in pieces if piece.block]

    output = sealed.cut.ends[plan.output]
    commands, loaded = {True: len(output) - 1, False: 0}, set[int]()
    for buffer, loads, run in transferred(plan):
        commands[loads] += len(list(sealed.cut.sizes(buffer, run)))
        if loads and buffer == input_buffer.name:
            loaded |= set(range(*run))
    fed = sealed.pieces[context["input_first"] : context["input_stop"]]
    return Faulty(
        program,
        places(sealed.pieces[: sealed.weights]),
        places([piece for piece in fed if piece.at - fed[0].at in loaded]),
        commands[True],
        commands[False],
        len(fed),
    )
