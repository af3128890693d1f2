"""Seals of what is on a card: pieces in blocks of their own, each with its tag before it.

The image that is generated has no tags that take a key: it is the same for every chip.
``card.json`` beside it says how it is sealed with a chip's key, which nothing here knows
(``pipeline.sealed_image``). With ``security=none`` tags are CRCs, and it is all that a card needs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.artifacts import write_text
from pipeline.codegen.card.image import LAST_MAGIC, MAGIC, NAME, Image
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.pieces import Pieces
from pipeline.plan.repair import Repair
from pipeline.plan.vocabulary import Buffer, Plan
from pipeline.sealed_image import MANIFEST, SALT_BYTES, checked, identity
from pipeline.sealed_image import write as write_pieces
from pipeline.sealing import KEYED, PIECE_BLOCKS, TAG_BYTES, Security


class Piece(NamedTuple):
    """``at``: its first byte in the image without tags, ``block``: where it begins on the card; 0
    of what is between two tensors."""

    at: int
    block: int
    bytes: int


@dataclass(frozen=True)
class Sealed:
    image: Image
    security: Security

    @classmethod
    def of(cls, graph: Graph, plan: Plan, hardware: Hardware) -> Sealed | None:
        """None where nothing is sealed."""
        card = hardware.card
        return cls(Image(graph, plan, apart=True), card.security) if card.sealed else None

    @property
    def keyed(self) -> bool:
        return self.security in KEYED

    @cached_property
    def cut(self) -> Pieces:
        return Pieces.of(self.image.plan)

    @cached_property
    def pieces(self) -> list[Piece]:
        """List the pieces of weights, then of feature maps, as they lie on the card."""
        found, block, cut = list[Piece](), 1, self.cut
        for buffer in (*self.image.weights, *self.image.maps):
            base = self.image.at[buffer.name]
            for low, high in pairwise(cut.ends[buffer.name]):
                found.append(Piece(base + low, block, high - low))
                block += cut.blocks(high - low)
            block_bytes = self.image.block_bytes
            if rest := (-cut.ends[buffer.name][-1]) % block_bytes:
                found.append(Piece(found[-1].at + found[-1].bytes, 0, rest))
        return found

    @cached_property
    def weights(self) -> int:
        """Count the pieces, those between tensors among them, that hold no feature maps."""
        first = min(self.image.at[buffer.name] for buffer in self.image.maps)
        return sum(piece.at < first for piece in self.pieces)

    def _numbers(self, buffer: Buffer) -> tuple[int, int]:
        """Return the first of a buffer's pieces and the one after its last."""
        base = self.image.at[buffer.name]
        last = base + self.cut.ends[buffer.name][-1]
        within = [n for n, p in enumerate(self.pieces) if base <= p.at < last]
        return within[0], within[-1] + 1

    @cached_property
    def blocks(self) -> int:
        """Count the card's blocks: with the first, which says what it is, and the last."""
        last = max(self.pieces, key=lambda piece: piece.block)
        return last.block + self.cut.blocks(last.bytes) + 1

    def identity(self, magic: bytes = MAGIC) -> bytes:
        hashes = self.image.identity()[-16:]
        return identity(magic, self.image.block_bytes, self.blocks, hashes, self.security)

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Describe how it is sealed."""
        return {
            "security": self.security,
            "block_bytes": self.image.block_bytes,
            "blocks": self.blocks,
            "identity": self.identity().hex(),
            "last": self.identity(LAST_MAGIC).hex(),
            "pieces": [
                [n, *piece] for n, piece in enumerate(self.pieces[: self.weights]) if piece.block
            ],
        }

    def write(self, folder: Path) -> None:
        """``card.json``, or, without a key, the tags in ``card.img``."""
        if not self.keyed:
            plain = folder / NAME
            salt = bytes(SALT_BYTES)
            write_pieces(self.manifest, plain, plain, checked, _checked_tag, salt)
            return
        write_text(folder / MANIFEST, json.dumps(self.manifest, sort_keys=True) + "\n")

    def context(self, fed: Buffer, repair: Repair) -> dict[str, Any]:
        """Return what templates need; ``fed``: the input."""
        first, stop = self._numbers(fed)
        makes = [(repair.maker.get(b.tensor, -1), self._numbers(b)[0]) for b in self.image.maps]
        return {
            "parts": [next(n for maker, n in makes if maker >= place) for place in repair.places],
            "pieces": self.pieces,
            "end": self.pieces[-1].at + self.pieces[-1].bytes,
            "weights": self.weights,
            "input_first": first,
            "input_stop": stop,
            "keyed": self.keyed,
            "encrypts": self.security == "encrypted",
            "copy_bytes": PIECE_BLOCKS * self.image.block_bytes,
        }


def _checked_tag(number: int, said: bytes) -> bytes:
    return checked(number, said)[:TAG_BYTES]


def write(graph: Graph, plan: Plan, hardware: Hardware, folder: Path) -> None:
    """Write a card's content to ``folder``: ``card.img``, and ``card.json`` if it is sealed."""
    sealed = Sealed.of(graph, plan, hardware)
    image = sealed.image if sealed else Image(graph, plan, hardware.card.summed)
    image.write(folder / NAME)
    if sealed:
        sealed.write(folder)
