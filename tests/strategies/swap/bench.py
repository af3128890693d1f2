"""``python -m tests.strategies.swap.bench [network ...]``: how far plans are from what no plan is
below, on a card with commands and blocks, in 320,000 B of SRAM with stack and card's blocks, and
MobileNet in 56 KB, too. Exits with 1 where one is further than it has to be. ``… bench proofs``:
how long proofs of the largest plans take, of networks in tiles, as experiments have them and their
figures vary them; 1 where one of an experiment takes longer than it may.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pipeline.graph.graph import Graph
from pipeline.plan.fit import roomy
from pipeline.plan.verify import verify
from pipeline.strategies.swap import Swap
from pipeline.timing.simulate import simulate
from pipeline.timing.summary import summarized
from tests.strategies.swap.nets import (
    alexnet,
    best_plan,
    mobilenet,
    paper_rates,
    swapnn_plan,
    vgg16,
)
from tests.targets.cortex_m import board_named

NETWORKS: dict[str, Callable[[], Graph]] = {
    "vgg16": vgg16, "alexnet": alexnet, "mobilenet": mobilenet,
}  # fmt: skip
KIB = 1024
MOST_SECONDS = 20
"""On one core, of a proof."""
TILES = ((128, 512, 1), (128, 8192, 10), (16, 512, 1))
"""KiB of a buffer, KiB of SRAM, frames: the first are an experiment's, the others its figures'."""
SRAM, SMALL = 320_000, 56 * KIB
NEAR = 1.10
"""Multiple of the bound's overhead that is near; or less than ``LITTLE`` % of computing more."""
LITTLE = 1.0
SMALL_NEAR = 1.25
"""Multiple of the bound's time that is near, in ``SMALL`` bytes of SRAM."""


def proofs() -> bool:
    """Check whether proofs of the plans that an experiment makes take too long."""
    slow = False
    for graph in (network() for network in NETWORKS.values()):
        rates = paper_rates(graph)
        plans = {"best schedule": best_plan(graph, 512 * KIB, 1, rates)}
        for tile in TILES:
            buffer, sram, frames = tile
            plans[f"{buffer} KiB tiles, frames: {frames}"] = swapnn_plan(
                graph, sram * KIB, buffer * KIB, frames, rates
            )
        for number, (what, plan) in enumerate(plans.items()):
            begin = time.process_time()
            steps, took_s = verify(roomy(plan), graph).steps, time.process_time() - begin
            print(f"{graph.name}, {what}: {steps:,} steps proved in {took_s:.1f} s", flush=True)
            slow |= number < 2 and took_s > MOST_SECONDS
    return slow


def on_card(graph: Graph, sram_bytes: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The figures of the plan, ``waits_pct`` over what its own steps compute among them, and its
    notes."""
    hardware = replace(board_named("stm32f746g_sd"), sram_bytes=sram_bytes)
    plan = Swap().plan(graph, hardware)
    found = summarized(simulate(plan, graph, hardware), graph, hardware)
    found["waits_pct"] = 100 * (found["makespan_us"] / found["compute_us"] - 1)
    return found, dict(plan.notes)


def main(names: list[str]) -> int:
    if names == ["proofs"]:
        return int(proofs())
    missed = False
    for name in names or list(NETWORKS):
        graph = NETWORKS[name]()
        for sram_bytes in (SRAM, SMALL) if name == "mobilenet" else (SRAM,):
            begin = time.process_time()
            found, bound = on_card(graph, sram_bytes)
            took_s = time.process_time() - begin
            above, least = found["waits_pct"], float(bound["bound_overhead_pct"])
            times = (100 + above) / (100 + least)
            near = above <= max(NEAR * least, least + LITTLE)
            missed |= not (near if sram_bytes == SRAM else times <= SMALL_NEAR)
            print(
                f"{name} in {sram_bytes:,} B: {found['overhead_pct']:.2f} % above layers as whole, "
                f"{above:.2f} % above its steps, bound {least:.2f} % ({bound['bound_by']}): "
                f"{above / least:.2f} x, time {times:.3f} x; read "
                f"{found['card_read_bytes'] / 1e6:.2f} MB, stored "
                f"{found['card_write_bytes'] / 1e6:.2f} MB; planned in {took_s:.0f} s",
                flush=True,
            )  # fmt: skip
    return int(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
