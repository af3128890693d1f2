"""``python -m tests.strategies.swap.bench``: how long proofs of networks in tiles take.

The largest plans there are: of the experiments, of what their figures vary, and AlexNet and VGG16
in tiles of 16 KiB, as the paper counts them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

from pipeline.graph.graph import Graph
from pipeline.plan.fit import roomy
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Plan
from tests.strategies.swap.nets import (
    alexnet,
    best_plan,
    mobilenet,
    paper_rates,
    swapnn_plan,
    vgg16,
)

KIB = 1024
MOST_SECONDS = 20
"""On one core, of a plan that an experiment proves."""

TILES = ((128, 512, 1), (128, 8192, 10), (16, 512, 1))
"""KiB of a buffer, KiB of SRAM, frames: the first are an experiment's, the others its figures'."""


def plans(graph: Graph) -> Iterator[tuple[str, bool, Plan]]:
    """(what, whether an experiment proves it, the plan)."""
    rates = paper_rates(graph)
    yield "best schedule", True, best_plan(graph, 512 * KIB, 1, rates)
    for buffer_kib, sram_kib, frames in TILES:
        plan = swapnn_plan(graph, sram_kib * KIB, buffer_kib * KIB, frames, rates)
        tiles = (buffer_kib, sram_kib, frames)
        yield f"{buffer_kib} KiB tiles, frames: {frames}", tiles == TILES[0], plan


def proofs() -> Iterator[tuple[str, bool, int, float]]:
    """(what, whether an experiment proves it, steps, seconds of one core)."""
    for network in (alexnet, mobilenet, vgg16):
        graph = network()
        for what, limited, plan in plans(graph):
            begin = time.process_time()
            report = verify(roomy(plan), graph)
            took = time.process_time() - begin
            yield f"{graph.name}, {what}", limited, report.steps, took


def main() -> int:
    exceeded = 0
    for what, limited, steps, seconds in proofs():
        print(f"{what}: {steps:,} steps proved in {seconds:.1f} s", flush=True)
        exceeded += limited and seconds > MOST_SECONDS
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
