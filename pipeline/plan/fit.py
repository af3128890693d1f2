"""Does a plan fit a board? A plan that does not is still a plan: its numbers are the answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, prod

from pipeline.errors import PlanError
from pipeline.hardware import Hardware, Memory
from pipeline.plan.cost import Cost, high_water_nibbles
from pipeline.plan.vocabulary import Plan

LIMITS = {"sram": "hardware.sram_bytes", "flash": "hardware.flash_bytes"}
"""The key of the config that says how large a memory is."""

CHOSEN = "auto"
"""The note of a plan that ``strategy=auto`` has chosen: why."""


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


def of_board(plan: Plan, hardware: Hardware) -> None:
    """
    Raises:
        PlanError: the plan writes what is read-only there, or counts on another granule.
    """
    known = {memory.name: memory for memory in hardware.memories}
    for memory in plan.memories:
        has = known.get(memory.name)
        if memory.kind in ("stream", "frame") and has is None:
            continue
        if has is None or (has.kind, has.granule_bytes) != (memory.kind, memory.granule_bytes):
            board = f"{has.kind} in granules of {has.granule_bytes} B" if has else "no such memory"
            raise PlanError(
                f"the plan takes {memory.name} for {memory.kind} in granules of "
                f"{memory.granule_bytes} B, {hardware.name} has {board}: run stage schedule again"
            )


def roomy(plan: Plan) -> Plan:
    """The same plan with every memory large enough for it, so that it can be verified anyway."""
    memories = []
    for memory in plan.memories:
        needed = ceil(high_water_nibbles(plan, memory.name, True) / 2)
        memories.append(replace(memory, bytes=max(memory.bytes, needed)))
    return replace(plan, memories=tuple(memories))


def fit(plan: Plan, cost: Cost, hardware: Hardware) -> Fit:
    """The first memory that does not suffice; where all do, the one that also holds the stack."""
    verdicts = fits(plan, cost, hardware)
    lacking = [verdict for verdict in verdicts.values() if not verdict.fits]
    return lacking[0] if lacking else verdicts[hardware.stack_memory]


def fits(plan: Plan, cost: Cost, hardware: Hardware) -> dict[str, Fit]:
    """Compare, for each memory, what ``plan`` needs with what ``hardware`` has.

    SRAM holds the arena, the weights where they live there, and the stack's reserve. Program code
    is not known yet; the build checks flash again.
    """
    return {memory.name: _memory(plan, cost, hardware, memory) for memory in hardware.memories}


def needs(plan: Plan, hardware: Hardware) -> dict[str, int]:
    """Return the bytes that ``plan`` needs of each memory, as ``fits`` compares them."""
    return {memory.name: _needed(plan, hardware, memory) for memory in hardware.memories}


def _needed(plan: Plan, hardware: Hardware, memory: Memory) -> int:
    held = ceil(high_water_nibbles(plan, memory.name, True) / 2)
    if memory.name != hardware.stack_memory:
        return held
    return held + hardware.stack_reserve_bytes + _driver_bytes(plan, hardware)


def _driver_bytes(plan: Plan, hardware: Hardware) -> int:
    maps = (b for b in plan.on_card.values() if b.role != "constant")
    stored = (prod(b.shape) * b.nibbles / 2 for b in maps)
    return hardware.card.kept_bytes + hardware.card.sums_bytes(stored) if plan.on_card else 0


def _memory(plan: Plan, cost: Cost, hardware: Hardware, memory: Memory) -> Fit:
    held = ceil(high_water_nibbles(plan, memory.name, True) / 2)
    weights = _constant_bytes(plan, memory.name)
    parts = [f"weights {_bytes(weights)} B"] if weights else []
    if memory.name == hardware.activation_memory:
        parts.append(f"activations {_bytes(cost.pmu_bytes)} B at their peak in {cost.peak.label}")
    needed = _needed(plan, hardware, memory)
    if memory.name == hardware.stack_memory and hardware.stack_reserve_bytes:
        parts.append(
            f"{_bytes(hardware.stack_reserve_bytes)} B kept for the stack "
            "(hardware.stack_reserve_bytes)"
        )
    driver = _driver_bytes(plan, hardware)
    if memory.name == hardware.stack_memory and driver:
        secured = hardware.card.sealed or hardware.card.summed
        keys = f"hardware.card.driver_bytes{', and what security takes' * secured}"
        parts.append(f"{_bytes(driver)} B for what the card's driver keeps ({keys})")
    name = memory.name.upper() if memory.kind == "ram" else memory.name
    *ways, last = _ways(plan, hardware, memory, held, weights)
    if memory.name in LIMITS:
        last += f" (with {LIMITS[memory.name]}={needed} or more)"
    advice = f"{', '.join(ways)} or {last}"
    return Fit(needed <= memory.bytes, name, needed, memory.bytes, " + ".join(parts), advice)


def _ways(
    plan: Plan, hardware: Hardware, memory: Memory, held: int, weights: float
) -> Iterator[str]:
    """Yield what may help if ``memory`` is too small for ``held`` bytes, ``weights`` included."""
    four_bits = any(buffer.bits == 4 for buffer in plan.buffers)
    if memory.name == hardware.activation_memory:
        enough = held - weights + hardware.stack_reserve_bytes <= memory.bytes
        if weights and enough and weights < hardware.flash_bytes:
            yield "hardware.weights_in=flash"
        if memory.name == "sram" and hardware.external("ram"):
            yield "hardware.activations_in=sdram"
        if CHOSEN not in dict(plan.notes) and plan.strategy != "joint":
            yield "strategy=auto"
    if weights and memory.name == "flash" and hardware.external("rom"):
        yield "hardware.weights_in=external_flash"
    yield "fewer channels"
    if four_bits:  # the only networks that are pruned here
        yield "prune=magnitude"
    yield "a larger card" if memory.kind == "block" else "a larger board"


def _bytes(number: float) -> str:
    return f"{number:,.1f}".removesuffix(".0")


def _constant_bytes(plan: Plan, memory: str) -> float:
    constants = [b for b in plan.buffers if b.memory == memory and b.role == "constant"]
    return sum(prod(b.shape) * b.nibbles for b in constants) / 2
