"""``python -m tests.strategies.swap.bench_sizes card|paper|joint [network ...] [bytes ...]``:
plans of SwapNN's networks by how much SRAM there is, as rows of docs/swap.md: those of strategy
swap in one of the settings of the card's time, or, ``joint``, the fastest of the joint schedule, on
the card. The figures are those of ``sweep=swapped``, without the stages around them; every plan is
proved.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.cost import high_water_nibbles
from pipeline.plan.fit import roomy
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Plan
from pipeline.strategies.base import Strategy
from pipeline.strategies.joint import Joint
from pipeline.strategies.swap import Swap, left
from pipeline.timing.simulate import simulate
from pipeline.timing.summary import summarized
from tests.strategies.swap.bench_card import NETWORKS
from tests.targets.cortex_m import board_named

SIZES = (57_344, 65_536, 131_072, 262_144, 320_000, 524_288)
PAPER_CYCLES = {"mobilenet": 2.392445, "alexnet": 3.801618, "vgg16": 8.401962}
"""For a multiply–accumulate, so that each network takes as long as the paper's."""
STRATEGIES: dict[str, Strategy] = {
    "card": Swap(), "paper": Swap(), "joint": Joint(objective="latency"),
}  # fmt: skip


def board(setting: str, network: str, sram_bytes: int) -> Hardware:
    """In one of the settings of the card's time."""
    hardware = replace(board_named("stm32f746g_sd"), sram_bytes=sram_bytes)
    if setting != "paper":
        return hardware
    card = replace(hardware.card, timing="paper")
    return replace(hardware, card=card, cycles_per_mac=PAPER_CYCLES[network])


def needed_bytes(plan: Plan, graph: Graph, hardware: Hardware) -> int:
    """SRAM that the plan takes, with stack and card's blocks."""
    arena = high_water_nibbles(plan, hardware.activation_memory, constants=False) // 2
    return arena + hardware.sram_bytes - left(graph, hardware)


def row(setting: str, network: str, graph: Graph, sram_bytes: int) -> str:
    """SRAM | time | bound | read, stored | reach cells | years | energy."""
    hardware = board(setting, network, sram_bytes)
    plan = STRATEGIES[setting].plan(graph, hardware)
    verify(roomy(plan), graph)
    needed = needed_bytes(plan, graph, hardware)
    if needed > sram_bytes:
        return f"| {network} | {setting} | {sram_bytes:,} B | does not fit: {needed:,} B |"
    found: dict[str, Any] = summarized(simulate(plan, graph, hardware), graph, hardware)
    notes, mega = dict(plan.notes), 1e6
    joint = f" | {notes['weights_in_flash_bytes']:,} B in flash" * (setting == "joint")
    return (
        f"| {network} | {setting} | {sram_bytes:,} B "
        f"| {found['makespan_us'] / mega:.2f} s, +{found['overhead_pct']:.2f} % "
        f"| +{float(notes['bound_overhead_pct']):.2f} % "
        f"| {found['card_read_bytes'] / mega:.2f}, {found['card_write_bytes'] / mega:.3f} MB "
        f"| {found['wear'] / mega:.2f} to {found['wear_worst'] / mega:.1f} MB "
        f"| {found['wear_years_first_failure_worst']:.1f} to "
        f"{found['wear_years_first_failure']:.1f} "
        f"| {found['energy_uj'] / mega:.2f} J "
        f"| maps stay from {notes.get('maps_stay_bytes', 0):,} B, weights from "
        f"{notes.get('weights_stay_bytes', 0):,} B{joint} |"
    )


def main(setting: str, words: list[str]) -> None:
    sizes = [int(word) for word in words if word.isdigit()]
    for name in [word for word in words if not word.isdigit()] or list(NETWORKS):
        graph = NETWORKS[name]()
        for sram_bytes in sizes or SIZES:
            print(row(setting, name, graph, sram_bytes), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
