"""The tables of results: metrics in the order people ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.metrics import NO_LIMIT

ACCURACY, MEMORY, TIME, CARD = "Accuracy", "Memory", "Time and energy", "Card"
GROUPS = {
    ACCURACY: (
        *("accuracy_float", "accuracy_int", "accuracy_device"),
        *("agreement_float", "images_float"),
    ),
    "Same answers everywhere": (
        *("images_device", "mismatches_device", "images_host", "mismatches_host"),
        "images_reference",
    ),
    "For every input": (
        *("proof_machine", "proof_said", "worst_instructions", "wcet_cycles", "wcet_us"),
    ),
    MEMORY: (
        *("pmu_bytes", "state_bytes", "liveness_bytes", "arena_bytes"),
        *("linked_bytes", "stack_bytes"),
        *("sram_bytes", "planned_sram_bytes", "sram_limit_bytes"),
        *("weight_bytes", "flash_bytes", "planned_flash_bytes"),
    ),
    TIME: (
        *("latency_us", "latency_max_us", "latency_no_zeros_us"),
        *("latency_low_us", "latency_high_us"),
        "latency_error_pct",
        *("modelled_us", "compute_us", "cycles", "instructions", "macs", "macs_window"),
        *("macs_executed", "energy_uj"),
        *("sound_us", "realtime_factor", "energy_second_uj"),
    ),
    CARD: (
        *("io_us", "sealing_us", "makespan_us", "overhead_pct"),
        *("throughput_fps", "throughput_loss_pct"),
        *("run_overhead_pct", "run_throughput_fps", "run_throughput_loss_pct"),
        *("energy_overhead_pct", "run_energy_overhead_pct"),
        *("card_read_bytes", "card_write_bytes", "maps_stay_bytes", "weights_stay_bytes"),
        *("write_amplification_block", "write_amplification_erase", "wear", "wear_worst"),
        *("wear_years_first_failure", "wear_years_first_failure_worst"),
        *("wear_years_half", "wear_years_half_worst"),
        *("energy_compute_uj", "energy_io_uj", "energy_both_uj", "energy_idle_uj"),
    ),
}

MODELLED = ("latency_us", "latency_low_us", "latency_high_us", "compute_us", "cycles")
"""Metrics that no clock measured, where the core's cycles are modelled; energy is so everywhere."""


def groups(metrics: Mapping[str, Any]) -> dict[str, list[tuple[str, Any, bool]]]:
    """Return the tables: title -> (metric, value, whether it is modelled) each."""
    modelled = {name for name in metrics if name.startswith("energy_")}
    modelled |= {*(MODELLED if "latency_low_us" in metrics else ())}
    hidden = {name for name in metrics if name.endswith("_limit_bytes")
              and metrics[name] >= NO_LIMIT}  # fmt: skip
    if metrics.get("random_weights"):
        hidden |= set(GROUPS[ACCURACY])
    if not metrics.get("wear"):  # no card
        hidden |= set(GROUPS[CARD])
    found = {
        title: [
            (name, metrics[name], name in modelled)
            for name in names
            if metrics.get(name) is not None and name not in hidden
        ]
        for title, names in GROUPS.items()
    }
    return {title: values for title, values in found.items() if values}
