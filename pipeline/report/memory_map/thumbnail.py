"""A memory map as a few rows of letters: to be shown small, many beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Any

import numpy as np

ROWS, COLUMNS = 48, 96
LETTERS = {"tensor": "tuv", "state": "s", "sums": "a", "weights": "w", "scratch": "x"}
"""Letters by kind of ``palette.MEMORY``, tensors in turn; capital where a kept place is empty."""
FREE = "."


def thumbnail(drawn: Mapping[str, Any]) -> dict[str, Any]:
    """Draw what lives and dies in the first memory of a ``picture``: ``rows`` from the highest
    address to the lowest, together ``bytes``. What the memory also holds for ever: ``weights``
    and ``stack``, in bytes; and its ``limit``."""
    memory, end = drawn["memories"][0], drawn["end"]
    weights = [row for row in memory["held"] if _constant(drawn, row)]
    arena = [row for row in memory["held"] if not _constant(drawn, row)]
    bottom = min((min(row[3:]) for row in arena), default=0)
    top = max((max(row[3:]) for row in arena), default=1)
    letters = _letters(drawn["buffers"])
    grid = np.full((ROWS, COLUMNS), FREE, dtype="U1")

    def fill(letter: str, begin: float, stop: float, low: float, high: float) -> None:
        first, last = (int(at / end * COLUMNS) for at in (begin, stop))
        below, above = ((at - bottom) / (top - bottom) * ROWS for at in (low, high))
        grid[int(below) : ceil(above), first : max(last, first + 1)] = letter

    for row in arena:
        number, begin, stop = row[:3]
        letter = letters[number]
        if drawn["buffers"][number]["kind"] != "scratch":
            letter = letter.upper()
        for low, high in _pairs(row):
            fill(letter, begin, stop, low, high)
    columns = (np.cumsum(memory["pieces"][name]).tolist() for name in memory["pieces"])
    for number, low, nibbles, born, lasts in zip(*columns, strict=True):
        fill(letters[number], born, born + lasts, low, low + nibbles)
    return {
        "rows": ["".join(row) for row in grid[::-1]],
        "bytes": (top - bottom) / 2,
        "weights": sum(high - low for row in weights for low, high in _pairs(row)) / 2,
        "stack": memory["stack"],
        "limit": memory["bytes"],
    }


def _letters(buffers: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the letter of each buffer; those of one tensor have the same."""
    order = list(dict.fromkeys(each["tensor"] or each["name"] for each in buffers))
    found = []
    for each in buffers:
        shades = LETTERS[each["kind"]]
        found.append(shades[order.index(each["tensor"] or each["name"]) % len(shades)])
    return found


def _constant(drawn: Mapping[str, Any], row: Sequence[int]) -> bool:
    return drawn["buffers"][row[0]]["kind"] == "weights" and row[1:3] == [0, drawn["end"]]


def _pairs(row: Sequence[int]) -> Iterator[tuple[int, int]]:
    return zip(row[3::2], row[4::2], strict=True)
