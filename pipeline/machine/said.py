"""Say in two lines what is proved of the machine code, or why nothing is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan

COMPLETE, BOUNDED, NONE = "complete", "bounded", "none"

METRICS = ("proof_machine", "proof_said", "worst_instructions", "wcet_cycles", "wcet_us")
"""Keys of ``machine_proof.json`` that are metrics."""

PROVED = (
    "Proved for every input: no access outside arena, tables and stack; each step reads and writes "
    "what the plan says (interrupts, DMA and faults are outside)."
)


def uncovered(plan: Plan, hardware: Hardware, target: str) -> str:
    """Say why a run can have no proof; "" where it may have one."""
    if target != "simulate" or hardware.simulator != "qemu":
        return "proofs follow a Cortex-M simulated in QEMU"
    if len(plan.tracks) > 1 or plan.on_card:
        return "the proof does not follow transfers of a card yet"
    if any(memory.kind == "frame" for memory in plan.memories):
        return "the proof does not follow inputs that lie outside of the arena yet"
    return ""


def none(reason: str) -> dict[str, Any]:
    """Return the metrics of a run without a proof."""
    return {"proof_machine": NONE, "proof_said": f"Not proved: {reason}."}


BRANCH_CYCLES = 3
"""The most that an instruction that computes in registers takes, without waiting for flash."""


def proved(
    kind: str, executed: int, hardware: Hardware, device: Mapping[str, Any], arms: int = 0
) -> dict[str, Any]:
    """Return the metrics of a proof in which nn_invoke executes so many instructions at most; by
    the upper band of the model in ``device.json`` so many cycles, where nothing, such as a cache,
    is kept from call to call. So many ``arms`` of the instructions are of branches that depend on
    data: others may have run where the model counted."""
    found: dict[str, Any] = {"proof_machine": kind, "worst_instructions": executed}
    flash, cycles = hardware.flash_timing, device.get("modelled_cycles", {}).get("high")
    worst = f"{executed:,} instructions"
    if cycles and not (flash.instruction_lines or flash.data_lines or hardware.cpu == "cortex-m7"):
        cycles += arms * (BRANCH_CYCLES + flash.wait_states)
        found |= {"wcet_cycles": cycles, "wcet_us": cycles / hardware.clock_hz * 1e6}
        worst = f"{cycles:,} cycles, modelled"
    return found | {"proof_said": f"{PROVED}\nWorst case: {worst}."}


def said(proof: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics among the content of ``machine_proof.json``."""
    return {name: proof[name] for name in METRICS if name in proof}
