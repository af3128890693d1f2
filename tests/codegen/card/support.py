"""Plans that swap, as C with a card, compiled natively and run; boards whose card is sealed, and
what becomes of a card that is wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pipeline.codegen import generate
from pipeline.codegen.checks import arena_bytes
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan
from pipeline.sealed_image import MANIFEST, seal
from pipeline.sealing import Security
from pipeline.strategies.swap import Swap
from pipeline.targets import host, protocol, toolchain
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
        """Of weights: number, byte without tags, block, bytes."""
        found = json.loads((self.build / MANIFEST).read_text())["pieces"]
        return [tuple(piece) for piece in found]

    def answers(
        self, image: bytes | None, given: IntArray, key: bytes | None = KEY, again: bool = False
    ) -> list[Reply]:
        """Of the native program, whose card and chip these are; ``again``: as it was left."""
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
        """Whether a reply that says it is right is; ``given``: one frame."""
        assert reply.status == Status.OK
        expected = self.graph.outputs(given[None]).astype(np.int8).tobytes()
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
