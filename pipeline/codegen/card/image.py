"""Content of a card before the first inference: docs/history/swap.md has the layout.

A header, the weights in the order in which they are first read, room for the feature maps, and a
generation block, which is written last: without it the image was not written to its end.
"""

import struct
from binascii import crc_hqx
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from pipeline.artifacts import whole
from pipeline.codegen.card import tracks
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.plan import ahead
from pipeline.plan.serialize import plan_hash
from pipeline.plan.unrolled import repeated
from pipeline.plan.vocabulary import Buffer, Move, Plan

NAME = "card.img"
MAGIC, LAST_MAGIC = b"THIMBLE\0", b"THIMEND\0"
VERSION = 1
IDENTITY = struct.Struct("<8sHHI8s8s")
"""Magic, version, bytes of a block, blocks of the image, hashes of the graph and of the plan."""
EXTENT = struct.Struct("<IIII")
"""Kind of content, first block, number of blocks, and the CRC-32 of the bytes (0: none yet)."""
COUNT = struct.Struct("<I")
CHECK = struct.Struct("<I")
"""CRC-32 (IEEE 802.3) of the block's bytes before it, which it ends."""
LEAST_BLOCK = 128
"""Bytes that a header takes."""
MOST_BYTES = 1 << 32
WEIGHTS, MAPS = 1, 2


class Extent(NamedTuple):
    kind: int
    first: int
    blocks: int


@dataclass(frozen=True)
class Image:
    """Bytes count from the beginning of the image.

    Attributes:
        apart: feature maps lie one after the other, too, wherever the plan has them.
    """

    graph: Graph
    plan: Plan
    apart: bool = False

    @cached_property
    def block_bytes(self) -> int:
        """
        Raises:
            ThimbleError: where blocks are too small for a header.
        """
        memory = next(m for m in self.plan.memories if m.kind == "block")
        if memory.granule_bytes < LEAST_BLOCK:
            raise ThimbleError(
                f"a card's image has blocks of {LEAST_BLOCK} B or more, the plan has "
                f"{memory.granule_bytes} B"
            )
        return memory.granule_bytes

    @cached_property
    def weights(self) -> list[Buffer]:
        """In the order of their first use."""
        _, moving = tracks.split(self.plan)
        assert moving is not None
        moves = (step for step, _ in repeated(moving.steps) if isinstance(step, Move))
        used = dict.fromkeys(step.src.buffer for step in moves)
        found = [self.plan.buffer[name] for name in used]
        return [buffer for buffer in found if buffer.role == "constant"]

    @cached_property
    def maps(self) -> list[Buffer]:
        """The input, and others in the order in which they are made."""
        made = {op.output: number for number, op in enumerate(self.graph.operators)}
        maps = (b for b in self.plan.on_card.values() if b.role != "constant")
        return sorted(maps, key=lambda buffer: made.get(buffer.tensor, -1))

    @cached_property
    def at(self) -> dict[str, int]:
        """The byte where each buffer begins: weights one after the other, feature maps as far from
        each other as the plan has them.

        Raises:
            ThimbleError: where bytes are counted in more than 32 bits.
        """
        top, found = self.block_bytes, dict[str, int]()
        for buffer in (*self.weights, *(self.maps if self.apart else ())):
            found[buffer.name] = top
            top += self._blocks(_bytes(buffer)) * self.block_bytes
        if self.apart:
            return found
        lowest = min((b.extent[0] // 2 for b in self.maps), default=0)
        shift = top - lowest // self.block_bytes * self.block_bytes
        found |= {buffer.name: buffer.extent[0] // 2 + shift for buffer in self.maps}
        highest = max((b.extent[1] // 2 + shift for b in self.maps), default=top)
        highest += (highest - top) * (ahead.place(self.plan) is not None)
        if highest + 2 * self.block_bytes > MOST_BYTES:
            raise ThimbleError(
                f"generated code counts a card's bytes in 32 bits, the image has {highest:,}"
            )
        return found

    @cached_property
    def ahead(self) -> dict[str, int]:
        """Describe what passes while an inference computes: from ``at`` on in the arena ``room``
        bytes of the next input, from ``take_at`` on a block of the last output. Maps, from byte
        ``first`` of the card on, have a second place, ``apart``, for every other inference."""
        if (place := ahead.place(self.plan)) is None:
            return {}
        (low, high), (weights, maps), block = place.extent, self.extents, self.block_bytes
        take_at, apart = high // 2 - block, maps.blocks // 2 * block
        found = {"at": low // 2, "room": take_at - low // 2, "take_at": take_at}
        return found | {"first": (1 + weights.blocks) * block, "apart": apart}

    @cached_property
    def extents(self) -> tuple[Extent, ...]:
        ends = {b.name: self.at[b.name] + _bytes(b) for b in (*self.weights, *self.maps)}
        first = self._blocks(max((ends[b.name] for b in self.weights), default=self.block_bytes))
        last = self._blocks(max((ends[b.name] for b in self.maps), default=first))
        maps = (last - first) * (2 if ahead.place(self.plan) else 1)
        return Extent(WEIGHTS, 1, first - 1), Extent(MAPS, first, maps)

    @cached_property
    def blocks(self) -> int:
        return self.extents[-1].first + self.extents[-1].blocks + 1

    @property
    def weights_check(self) -> int:
        """The byte where the checksum of the weights is."""
        return IDENTITY.size + COUNT.size + EXTENT.size - CHECK.size

    def sums(self, fed: Buffer) -> dict[str, Any]:
        """Describe the sums of blocks, for a chip that keeps them
        (firmware/kernels/frame/summed.c.j2); ``fed``: the input."""
        _, maps = self.extents
        content = b"".join(map(self._content, self.weights))
        size, first = self.block_bytes, self.at[fed.name] // self.block_bytes
        return {
            "weights": [crc_hqx(content[n : n + size], 0) for n in range(0, len(content), size)],
            "maps": maps.blocks,
            "input_first": first,
            "input_stop": first + self._blocks(_bytes(fed)),
        }

    def identity(self, magic: bytes = MAGIC) -> bytes:
        """Pack what the header, and with another magic the generation block, begin with."""
        hashes = bytes.fromhex(self.graph.hash), bytes.fromhex(plan_hash(self.plan))
        return IDENTITY.pack(magic, VERSION, self.block_bytes, self.blocks, *hashes)

    def write(self, path: Path) -> None:
        """The image as a file, whole or not at all; room for feature maps is a hole in it."""
        with whole(path) as file:
            check = 0
            file.seek(self.block_bytes)
            for buffer in self.weights:
                content = self._content(buffer)
                check = crc32(content, check)
                file.write(content)
            table = [EXTENT.pack(*e, check if e.kind == WEIGHTS else 0) for e in self.extents]
            listed = COUNT.pack(len(table)) + b"".join(table)
            file.seek(0)
            file.write(self._block(self.identity() + listed))
            file.seek((self.blocks - 1) * self.block_bytes)
            file.write(self._block(self.identity(LAST_MAGIC)))

    def _content(self, buffer: Buffer) -> bytes:
        """Return its bytes, and zeros to the end of a block."""
        dtype = self.graph.tensors[buffer.tensor].dtype
        content = self.graph.constants[buffer.tensor].astype(np.dtype(str(dtype))).tobytes()
        return content.ljust(self._blocks(len(content)) * self.block_bytes, b"\0")

    def _block(self, content: bytes) -> bytes:
        filled = content.ljust(self.block_bytes - CHECK.size, b"\0")
        return filled + CHECK.pack(crc32(filled))

    def _blocks(self, size: int) -> int:
        return -(-size // self.block_bytes)


def _bytes(buffer: Buffer) -> int:
    """Return all of its copies, and what may lie between them."""
    low, high = buffer.extent
    return (high - low) // 2
