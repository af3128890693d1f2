"""Four numbers for one RAM, side by side, and a picture of what each of them counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ARENA, GAPS, WEIGHTS, STATICS, STACK = "tensor", "gaps", "weights", "statics", "stack"
COUNTED = {
    ARENA: "tensors and scratch",
    WEIGHTS: "weights in RAM",
    STATICS: "other statics",
    STACK: "stack",
    GAPS: "gaps between them",
}
"""The kinds of bytes, as the legend calls them; but for gaps they are of ``palette.MEMORY``."""


@dataclass(frozen=True)
class Row:
    """One of the numbers: its metric, its parts as (kind, bytes), and what it counts."""

    title: str
    metric: str
    parts: tuple[tuple[str, float], ...]
    counts: str

    @property
    def bytes(self) -> float:
        return sum(size for _, size in self.parts)


def rows(metrics: Mapping[str, Any]) -> tuple[Row, ...]:
    """Those that are known: the liveness bound, the plan, what was linked, what was measured.

    Each has all that the one before it has, but for the measured stack, which may be less than
    its bound.
    """
    if metrics.get("liveness_bytes") is None:
        return ()
    live, arena = metrics["liveness_bytes"], metrics["arena_bytes"]
    shared = (ARENA, live), (GAPS, arena - live)
    found = [
        Row("liveness", "liveness_bytes", shared[:1],
            "what is alive at the same time in the plan's order, scratch included: no placement "
            "needs less"),
        Row("plan", "arena_bytes", shared,
            "the arena: every tensor at its address, with alignment and what lies unused between"
            + ("" if metrics.get("arena_in_sram", True) else
               "; it lies outside of the chip, and is no part of the numbers below")),
    ]  # fmt: skip
    if not metrics.get("linked_bytes"):
        return tuple(found)
    inside = shared if metrics.get("arena_in_sram", True) else ()
    weights = metrics.get("weight_sram_bytes") or 0
    statics = metrics["statics_bytes"] - weights - sum(size for _, size in inside)
    linked = (*inside, (WEIGHTS, weights), (STATICS, max(0, statics)))
    stack = metrics["linked_bytes"] - metrics["statics_bytes"]
    found.append(
        Row("linked", "linked_bytes", (*linked, (STACK, stack)),
            "all statics of the linked program, and the deepest stack that its code allows")
    )  # fmt: skip
    if metrics.get("stack_measured_bytes") is not None:
        found.append(
            Row("measured", "sram_bytes", (*linked, (STACK, metrics["stack_measured_bytes"])),
                "the same statics, and the deepest stack that was found after the test images")
        )  # fmt: skip
    return tuple(found)


def scale(found: tuple[Row, ...], limit_bytes: float) -> float:
    """Bytes that the picture's width stands for: no more of the board's RAM than is of use."""
    most = max((row.bytes for row in found), default=0.0)
    return max(most, min(limit_bytes, 1.25 * most))
