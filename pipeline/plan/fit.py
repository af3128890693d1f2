"""Does a plan fit a board? A plan that does not is still a plan: its numbers are the answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from pipeline.hardware import Hardware
from pipeline.plan.cost import Cost, high_water_nibbles
from pipeline.plan.vocabulary import Plan


@dataclass(frozen=True)
class Fit:
    """``needed_bytes`` of ``resource`` against ``available_bytes``; most of it at ``where``."""

    fits: bool
    resource: str
    needed_bytes: float
    available_bytes: float
    where: str
    advice: str

    def __str__(self) -> str:
        return (
            f"does not fit: {self.resource} needs {self.needed_bytes:g} B of "
            f"{self.available_bytes:g} B; the peak is at {self.where}; try {self.advice}"
        )


def roomy(plan: Plan) -> Plan:
    """The same plan with every memory large enough for it, so that it can be verified anyway."""
    memories = tuple(
        replace(m, bytes=max(m.bytes, ceil(high_water_nibbles(plan, m.name, True) / 2)))
        for m in plan.memories
    )
    return replace(plan, memories=memories)


def fit(plan: Plan, cost: Cost, hardware: Hardware) -> Fit:
    """Compare what ``plan`` needs with what ``hardware`` has: SRAM first, then flash.

    SRAM: the arena, the weights where they live in SRAM, and the stack's reserve. Program code is
    not known yet; the build checks flash again.
    """
    sram = ceil(high_water_nibbles(plan, "sram", True) / 2) + hardware.stack_reserve_bytes
    flash = ceil(high_water_nibbles(plan, "flash", True) / 2)
    peak = cost.peak
    parts = " + ".join(f"{name} {size:g} B" for name, size in peak.buffers)
    where = f"{peak.label} ({parts})"
    if sram > hardware.sram_bytes:
        advice = "strategy=herringbone, prune=magnitude, fewer channels, or a larger board"
        if hardware.weight_memory == "sram":
            advice = f"hardware.weights_in=flash, {advice}"
        return Fit(False, "SRAM", sram, hardware.sram_bytes, where, advice)
    if flash > hardware.flash_bytes:
        advice = "prune=magnitude, fewer channels, or a larger board"
        return Fit(False, "flash", flash, hardware.flash_bytes, "the weights", advice)
    return Fit(True, "SRAM", sram, hardware.sram_bytes, where, "")
