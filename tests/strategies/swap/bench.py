"""``python -m tests.strategies.swap.bench``: how long proofs of networks in tiles take.

The largest plans there are: of the experiments, of what their figures vary, and AlexNet and VGG16
in tiles of 16 KiB, as the paper counts them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

from pipeline.plan.fit import roomy
from pipeline.plan.verify import verify
from pipeline.strategies.swap import swapnn
from tests.strategies.swap.nets import alexnet, board, mobilenet, paper_rates, vgg16

KIB = 1024
MOST_SECONDS = 20
"""On one core, of a plan of an experiment."""

TILES = ((128, 512, 1), (16, 512, 1), (128, 8192, 10))
"""KiB of a buffer, KiB of SRAM, frames."""


def proofs() -> Iterator[tuple[str, int, float]]:
    """(what, steps, seconds of one core)."""
    for network in (alexnet, mobilenet, vgg16):
        graph = network()
        rates = paper_rates(graph)
        for buffer_kib, sram_kib, frames in TILES:
            plan = swapnn.plan(
                graph, board(sram_kib * KIB), "swap", buffer_kib * KIB, (1, 2, 1), frames, rates
            )
            begin = time.process_time()
            report = verify(roomy(plan), graph)
            took = time.process_time() - begin
            yield f"{graph.name}, {buffer_kib} KiB tiles, {frames} frames", report.steps, took


def main() -> int:
    exceeded = 0
    for what, steps, seconds in proofs():
        print(f"{what}: {steps:,} steps proved in {seconds:.1f} s", flush=True)
        exceeded += seconds > MOST_SECONDS
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
