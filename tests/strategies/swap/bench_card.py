"""``python -m tests.strategies.swap.bench_card [network ...]``: how far plans are from what no plan
is below, on a card with commands and blocks, in 320,000 B of SRAM with stack and card's blocks, and
MobileNet in 56 KB, too. Exits with 1 where one is further than it has to be.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pipeline.graph.graph import Graph
from pipeline.strategies.swap import Swap
from pipeline.timing.simulate import simulate
from pipeline.timing.summary import summarized
from tests.strategies.swap.nets import alexnet, mobilenet, vgg16
from tests.targets.cortex_m import board_named

NETWORKS: dict[str, Callable[[], Graph]] = {
    "vgg16": vgg16, "alexnet": alexnet, "mobilenet": mobilenet,
}  # fmt: skip
SRAM, SMALL = 320_000, 56 * 1024
NEAR = 1.10
"""Of the bound's overhead; or less than ``LITTLE`` % of computing above it."""
LITTLE = 1.0
SMALL_NEAR = 1.25
"""Of the bound's time, in ``SMALL`` bytes of SRAM."""


def on_card(graph: Graph, sram_bytes: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The figures of the plan, ``waits_pct`` over what its own steps compute among them, and its
    notes."""
    hardware = replace(board_named("stm32f746g_sd"), sram_bytes=sram_bytes)
    plan = Swap().plan(graph, hardware)
    found = summarized(simulate(plan, graph, hardware), graph, hardware)
    found["waits_pct"] = 100 * (found["makespan_us"] / found["compute_us"] - 1)
    return found, dict(plan.notes)


def main(names: list[str]) -> int:
    missed = 0
    for name in names or list(NETWORKS):
        graph = NETWORKS[name]()
        for sram_bytes in (SRAM, SMALL) if name == "mobilenet" else (SRAM,):
            begin = time.process_time()
            found, bound = on_card(graph, sram_bytes)
            took_s = time.process_time() - begin
            above, least = found["waits_pct"], float(bound["bound_overhead_pct"])
            times = (100 + above) / (100 + least)
            near = above <= max(NEAR * least, least + LITTLE)
            missed += not (near if sram_bytes == SRAM else times <= SMALL_NEAR)
            print(
                f"{name} in {sram_bytes:,} B: {found['overhead_pct']:.2f} % above layers as whole, "
                f"{above:.2f} % above its steps, bound {least:.2f} % "
                f"({bound['bound_by']}): {above / least:.2f} x, time {times:.3f} x; read "
                f"{found['card_read_bytes'] / 1e6:.2f} MB, stored "
                f"{found['card_write_bytes'] / 1e6:.2f} MB; planned in {took_s:.0f} s",
                flush=True,
            )  # fmt: skip
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
