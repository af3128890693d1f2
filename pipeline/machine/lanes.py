"""Which bytes of a result depend on which bytes of a register: 16 bits, a row for each byte.

Bit 4 i + j says that byte i of the result may depend on byte j, lowest first.
"""

from __future__ import annotations

from collections.abc import Callable

LANES = 4
WHOLE, SAME, NONE = 0xFFFF, 0x8421, 0


def lanes(depends: Callable[[int, int], bool]) -> int:
    """Collect where ``depends(i, j)`` holds."""
    return sum(1 << LANES * i + j for i in range(LANES) for j in range(LANES) if depends(i, j))


UPWARD = lanes(lambda i, j: j <= i)
"""A sum, or the lower half of a product: a byte depends on those below."""
HALVES = lanes(lambda i, j: i // 2 == j // 2)
LOWER, UPPER = lanes(lambda i, j: j < 2), lanes(lambda i, j: j >= 2)
"""All of the result depends on one half."""


def then(first: int, second: int) -> int:
    """Apply ``first``, and ``second`` to its result."""
    return lanes(
        lambda i, j: any(second >> LANES * i + k & first >> LANES * k + j & 1 for k in range(LANES))
    )


def rows(matrix: int, kept: Callable[[int], bool]) -> int:
    """Keep some bytes of the result; others depend on nothing."""
    return matrix & lanes(lambda i, _: kept(i))


def shifted(by: int, *, fill: bool = False, turn: bool = False) -> int:
    """Shift up by ``by`` bits, down where it is negative; ``fill``: with the sign; ``turn``: what
    leaves below comes in above."""

    def depends(i: int, j: int) -> bool:
        for bit in (8 * i - by, 8 * i + 7 - by):
            place = bit // 8 % LANES if turn else min(bit // 8, LANES - 1) if fill else bit // 8
            if place == j:
                return True
        return False

    return lanes(depends)


def masked(mask: int) -> int:
    """Keep the bytes of a register in which ``mask`` has bits."""
    return rows(SAME, lambda i: bool(mask >> 8 * i & 0xFF))


def field(low: int, width: int, *, signed: bool) -> int:
    """Take ``width`` bits from ``low`` on to the bottom, extended by their sign or by zeros."""
    top, last = (low + width - 1) // 8, (width - 1) // 8
    within = rows(shifted(-low), lambda i: i <= last) & lanes(lambda _, j: j <= top)
    sign = lanes(lambda i, j: j == top and i >= last) if signed else NONE
    return within | sign
