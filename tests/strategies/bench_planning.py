"""``python -m tests.strategies.bench_planning``: seconds of processor time in which each strategy
but ``joint``, ``auto`` and ``swap`` plans each network of the zoo, or those that are named, for a
NUCLEO-L4R5ZI whatever its size; proofs not counted. Exits 1 where one takes more than a second."""

from __future__ import annotations

import contextlib
import sys
import time

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.strategies.base import Strategy
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from pipeline.strategies.patch import Patch
from pipeline.strategies.replace import Replace
from pipeline.strategies.single_transpose import SingleTranspose
from tests.strategies.zoo import ZOO, network
from tests.targets.cortex_m import board_named

MOST_SECONDS = 1.0
STRATEGIES: tuple[Strategy, ...] = (
    Ordinary(),
    Partial(),
    Patch(),
    Herringbone(),
    Replace(),
    SingleTranspose(),
)


def seconds(strategy: Strategy, graph: Graph) -> float:
    """Until there is a plan, or a line that says why not."""
    board, begin = board_named("nucleo_l4r5zi"), time.process_time()
    with contextlib.suppress(ThimbleError):
        strategy.plan(graph, board)
    return time.process_time() - begin


def main(names: list[str]) -> int:
    slow = 0
    print(f"{'network':24}" + "".join(f"{each.name:>18}" for each in STRATEGIES))
    for name in names or sorted(ZOO):
        graph = network(name)
        took = [seconds(strategy, graph) for strategy in STRATEGIES]
        slow += sum(each > MOST_SECONDS for each in took)
        print(f"{name:24}" + "".join(f"{each:18.2f}" for each in took), flush=True)
    print(f"more than {MOST_SECONDS:g} s: {slow}")
    return int(slow > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
