"""Memories as bars of what is in them, to scale."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, prod
from typing import Any

from pipeline import words
from pipeline.hardware import Hardware
from pipeline.metrics import NO_LIMIT
from pipeline.plan.cost import high_water_nibbles
from pipeline.plan.vocabulary import Plan


@dataclass(frozen=True)
class Bar:
    """A memory as coloured parts: (kind of ``palette.MEMORY``, bytes) each, of ``limit_bytes``."""

    title: str
    limit_bytes: float
    parts: tuple[tuple[str, float], ...]

    @property
    def used_bytes(self) -> float:
        return sum(size for _, size in self.parts)

    @property
    def free_bytes(self) -> float:
        return max(0.0, self.limit_bytes - self.used_bytes)

    @property
    def scale_bytes(self) -> float:
        """Return what the whole bar stands for: the limit, or more when the parts exceed it."""
        return max(self.limit_bytes, self.used_bytes)


def bars(metrics: Mapping[str, Any], hardware: Hardware) -> tuple[Bar, ...]:
    """RAM, flash and memories outside of the chip, from the metrics that are known so far; a
    computer has none."""
    result = []
    weights = metrics.get("weight_bytes", 0)
    if (metrics.get("sram_limit_bytes") or NO_LIMIT) < NO_LIMIT:
        arena = metrics.get("arena_bytes", 0) if metrics.get("arena_in_sram", True) else 0
        held = ceil(weights) if hardware.weight_memory == hardware.stack_memory else 0
        stack = metrics.get("stack_bytes") or 0
        others = max(0, (metrics.get("sram_bytes") or 0) - held - arena - stack)
        parts = (("weights", held), ("tensor", arena), ("statics", others), ("stack", stack))
        result.append(Bar("SRAM", metrics["sram_limit_bytes"], _shown(*parts)))
    flash = metrics.get("flash_limit_bytes") or NO_LIMIT
    if (used := metrics.get("flash_bytes")) and flash < NO_LIMIT:
        stored = hardware.weights_in in ("flash", "sram")  # what SRAM has at first is stored there
        inside = min(used, ceil(weights)) if stored else 0
        result.append(Bar("Flash", flash, _shown(("code", used - inside), ("weights", inside))))
    for name, (used, available) in (metrics.get("outside") or {}).items():
        kind = "weights" if name == hardware.weight_memory else "tensor"
        result.append(Bar(_title(name), available, ((kind, used),)))
    return tuple(result)


def planned(plan: Plan, hardware: Hardware) -> tuple[Bar, ...]:
    """Return a plan's need of each memory, the stack's reserve with it, before there is code."""
    result = []
    for memory in hardware.memories:
        held = ceil(high_water_nibbles(plan, memory.name, constants=True) / 2)
        weights = constants(plan).get(memory.name, 0)
        if not held or memory.bytes >= NO_LIMIT or memory.kind not in ("ram", "rom"):
            continue
        stack = hardware.stack_reserve_bytes if memory.name == hardware.stack_memory else 0
        parts = _shown(("weights", weights), ("tensor", held - weights), ("stack", stack))
        without = ", without the code" if memory.name == "flash" else ""
        result.append(Bar(_title(memory.name) + without, memory.bytes, parts))
    return tuple(result)


def constants(plan: Plan) -> dict[str, float]:
    """Bytes of weights and biases that lie in each memory, the most first."""
    found: Counter[str] = Counter()
    for buffer in plan.buffers:
        if buffer.role == "constant":
            found[buffer.memory] += ceil(prod(buffer.shape) * buffer.nibbles / 2)
    return dict(found.most_common())


def _title(name: str) -> str:
    called = words.memory(name)
    return called[:1].upper() + called[1:]


def _shown(*parts: tuple[str, float]) -> tuple[tuple[str, float], ...]:
    return tuple((kind, size) for kind, size in parts if size)
