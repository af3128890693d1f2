"""``python -m tests.strategies.swap.bench``: how long proofs of the largest plans take, of networks
in tiles, as experiments have them and their figures vary them. Exits with 1 where one of an
experiment takes longer than it may.
"""

import sys
import time
from collections.abc import Callable

from pipeline.graph.graph import Graph
from pipeline.plan.fit import roomy
from pipeline.plan.verify import verify
from tests.strategies.swap import nets

NETWORKS: dict[str, Callable[[], Graph]] = {
    "vgg16": nets.vgg16, "alexnet": nets.alexnet, "mobilenet": nets.mobilenet,
}  # fmt: skip
KIB = 1024
MOST_SECONDS = 20
"""On one core, of a proof."""
TILES = ((128, 512, 1), (128, 8192, 10), (16, 512, 1))
"""KiB of a buffer, KiB of SRAM, frames: the first are an experiment's, the others its figures'."""


def proofs() -> bool:
    """Check whether proofs of the plans that an experiment makes take too long."""
    slow = False
    for graph in (network() for network in NETWORKS.values()):
        rates = nets.paper_rates(graph)
        plans = {"best schedule": nets.best_plan(graph, 512 * KIB, 1, rates)}
        for tile in TILES:
            buffer, sram, frames = tile
            plans[f"{buffer} KiB tiles, frames: {frames}"] = nets.swapnn_plan(
                graph, sram * KIB, buffer * KIB, frames, rates
            )
        for number, (what, plan) in enumerate(plans.items()):
            begin = time.process_time()
            steps, took_s = verify(roomy(plan), graph).steps, time.process_time() - begin
            print(f"{graph.name}, {what}: {steps:,} steps proved in {took_s:.1f} s", flush=True)
            slow |= number < 2 and took_s > MOST_SECONDS
    return slow


if __name__ == "__main__":
    sys.exit(int(proofs()))
