"""Does a plan fit a board? A plan that does not is still a plan: its numbers are the answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, prod

from pipeline.hardware import Hardware, Memory
from pipeline.plan.cost import Cost, high_water_nibbles
from pipeline.plan.vocabulary import Plan, PlanError

LARGEST_BYTES = 1 << 32


@dataclass(frozen=True)
class Fit:
    """``needed_bytes`` of the memory ``resource`` against ``available_bytes``; ``where`` says what
    for. Where all fits, these are of the memory that also holds the stack."""

    fits: bool
    resource: str
    needed_bytes: float
    available_bytes: float
    where: str
    advice: str


def roomy(plan: Plan) -> Plan:
    """The same plan with every memory large enough for it, so that it can be verified anyway.

    Raises:
        PlanError: when that is more than any board has: a damaged plan.
    """
    memories = []
    for memory in plan.memories:
        needed = ceil(high_water_nibbles(plan, memory.name, True) / 2)
        if needed > max(memory.bytes, LARGEST_BYTES):
            raise PlanError(f"{memory.name} would need {needed} B: the plan is damaged")
        memories.append(replace(memory, bytes=max(memory.bytes, needed)))
    return replace(plan, memories=tuple(memories))


def fit(plan: Plan, cost: Cost, hardware: Hardware) -> Fit:
    """Compare what ``plan`` needs with what ``hardware`` has, one memory after the other.

    SRAM holds the arena, the weights where they live there, and the stack's reserve. Program code
    is not known yet; the build checks flash again.
    """
    verdicts = {m.name: _memory(plan, cost, hardware, m) for m in hardware.memories}
    lacking = [verdict for verdict in verdicts.values() if not verdict.fits]
    return lacking[0] if lacking else verdicts[hardware.stack_memory]


def _memory(plan: Plan, cost: Cost, hardware: Hardware, memory: Memory) -> Fit:
    needed = ceil(high_water_nibbles(plan, memory.name, True) / 2)
    weights = _constant_bytes(plan, memory.name)
    parts = [f"weights {_bytes(weights)} B"] if weights else []
    advice = "fewer channels, prune=magnitude, or a larger board"
    if memory.name == hardware.activation_memory:
        parts.append(f"activations {_bytes(cost.pmu_bytes)} B at their peak in {cost.peak.label}")
        advice = f"another strategy such as partial, {advice}"
        if memory.name == "sram" and hardware.external("ram"):
            advice = f"hardware.activations_in=sdram, {advice}"
        enough = needed - weights + hardware.stack_reserve_bytes <= memory.bytes
        if weights and enough and weights < hardware.flash_bytes:
            advice = f"hardware.weights_in=flash, {advice}"
    if weights and memory.name == "flash" and hardware.external("rom"):
        advice = f"hardware.weights_in=external_flash, {advice}"
    if memory.name == hardware.stack_memory:
        needed += hardware.stack_reserve_bytes
    if memory.name == hardware.stack_memory and hardware.stack_reserve_bytes:
        parts.append(f"{hardware.stack_reserve_bytes} B kept for the stack")
    name = memory.name.upper() if memory.kind == "ram" else memory.name
    where = " + ".join(parts)
    return Fit(needed <= memory.bytes, name, needed, memory.bytes, where, advice)


def _bytes(number: float) -> str:
    return f"{number:,.1f}".removesuffix(".0")


def _constant_bytes(plan: Plan, memory: str) -> float:
    constants = [b for b in plan.buffers if b.memory == memory and b.role == "constant"]
    return sum(prod(b.shape) * b.nibbles for b in constants) / 2
