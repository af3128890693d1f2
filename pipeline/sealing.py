"""Seal what leaves the chip: with a tag, and, where asked, encrypted (docs/card-security.md).

ChaCha20-Poly1305 as RFC 8439 has it, by the core: docs/decisions/0020. ``none`` has a CRC in the
tag's place, which catches accidents; a core whose card passes byte by byte, an AVR, keeps sums of
blocks instead. ``unchecked`` has nothing of that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pipeline.errors import ThimbleError

Security = Literal["unchecked", "none", "integrity", "encrypted"]
KEYED: tuple[Security, ...] = ("integrity", "encrypted")
"""Those that take a key."""

TAG_BYTES = 16
PIECE_BLOCKS = 8
"""Most blocks of the card that a piece of a feature map takes, with its tag, since the chip
keeps a copy of what it writes."""
STACK_BYTES = 1152
"""At most, of sealing and opening, and of what the chip remembers."""
SUM_BYTES = 2
"""Bytes of a block's sum, where the chip keeps sums."""


@dataclass(frozen=True)
class Cost:
    """Cycles of the core: of a byte, and of a piece besides."""

    byte: float
    piece: float

    def us(self, size: float, pieces: float, clock_hz: int) -> float:
        return (size * self.byte + pieces * self.piece) / clock_hz * 1e6


COSTS: dict[tuple[str, Security], Cost] = {
    ("cortex-m4", "none"): Cost(4.25, 66),
    ("cortex-m7", "none"): Cost(2.5, 23),
    ("cortex-m4", "integrity"): Cost(8.44, 3930),
    ("cortex-m4", "encrypted"): Cost(37.95, 4300),
    ("cortex-m7", "integrity"): Cost(4.69, 1610),
    ("cortex-m7", "encrypted"): Cost(18.91, 1610),
}
"""By ``hardware.cpu``: ``python -m tests.security.bench``, the slower of reading and writing."""


Engine = Literal["core", "stm32f756"]
"""Name what seals: the core, or the engines of a part beside it."""

HASH = 200 / 106.98
"""Cycles a byte of SHA-256 in an STM32F756's HASH: 106.98 MB/s at 200 MHz, measured by SEGGER with
what feeds it (kb.segger.com/Hash_STM32F756, 2019)."""

AES = 16 / 16
"""Cycles a byte of AES in its CRYP: 14 for a block (RM0385), eight words of it go over a bus that
takes two cycles for each: 16."""

ENGINES: dict[tuple[Engine, Security], Cost] = {
    ("stm32f756", "integrity"): Cost(HASH, 4 * 64 * HASH + 100),
    ("stm32f756", "encrypted"): Cost(AES + HASH, 4 * 64 * HASH + 150),
}
"""Modelled: AES by CRYP, then HMAC-SHA-256 by HASH, which besides a piece hashes its key twice, its
number and its digest, in a block of 64 B each; registers are an estimate. None of it was run."""


def cost(cpu: str, security: Security, engine: Engine = "core") -> Cost:
    """Look up the cost of what ``check`` lets pass."""
    found = ENGINES.get((engine, security), COSTS.get((cpu, security)))
    return found or Cost(0.0, 0.0)


def driven(engine: str) -> None:
    """
    Raises:
        ThimbleError: no program can use ``engine``.
    """
    if engine != "core":
        raise ThimbleError(
            f"hardware.card.engine={engine}: plans and their times know it, and there is no driver "
            "for it: until=schedule, or hardware.card.engine=core"
        )


def check(security: str, board: str, card_bytes: int, cpu: str) -> None:
    """
    Raises:
        ThimbleError: for a board without a card, or a core that nothing was measured on; of a key
            an AVR is one.
    """
    if security == "unchecked" or (security == "none" and (not card_bytes or cpu == "avr")):
        return
    if not card_bytes:
        raise ThimbleError(
            f"security={security}: {board} has no card, so that nothing leaves its chip: "
            "security=none, or hardware=stm32f746g_sd"
        )
    if not any(known == (cpu, security) for known in COSTS):
        known = ", ".join(sorted({name for name, _ in COSTS}))
        raise ThimbleError(
            f"security={security}: seals on {known}, not on {board}'s {cpu}: "
            f"security={'none' if cpu == 'avr' else 'unchecked'}, or hardware=stm32f746g_sd"
        )


def kept_bytes(block_bytes: int) -> int:
    """SRAM that sealing takes beside the arena."""
    return PIECE_BLOCKS * block_bytes + STACK_BYTES


def piece_bytes(block_bytes: int) -> int:
    """Return the most bytes of a feature map in one piece."""
    return PIECE_BLOCKS * block_bytes - TAG_BYTES
