"""``python -m tests.strategies.swap.bench_repair [network ...] [bytes ...]``: what making a lost
feature map again from the last good layer would save, where the whole inference is repeated
(docs/decisions/0021), as rows of that page.

An inference can go on after a layer where all that is live then is on the card whole, other than
what was lost. ``saved``: of the time of an inference, what has passed by the last such layer before
the one that is lost, on average over the bytes of maps that are read.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.plan.fit import roomy
from pipeline.plan.pieces import transferred
from pipeline.plan.vocabulary import Plan
from pipeline.strategies.swap import Swap
from pipeline.timing.simulate import Timeline, simulate
from tests.strategies.swap.bench_card import NETWORKS
from tests.targets.cortex_m import board_named

SIZES = (320_000, 131_072, 65_536)


@dataclass(frozen=True)
class Repair:
    """
    Attributes:
        maps: bytes of each feature map that is read from the card, the input's left out.
        again: operators with which an inference could go on, by number, ascending; 0 with the
            input.
        saved_us: by going on there, on average over these bytes.
        makespan_us: of an inference.
    """

    maps: dict[str, int]
    again: list[int]
    saved_us: float
    makespan_us: float

    @classmethod
    def of(cls, plan: Plan, graph: Graph, times: Timeline) -> Repair:
        stored = {
            b.name: b.tensor
            for b in plan.buffers
            if plan.memory[b.memory].kind == "block" and b.role != "constant"
        }
        read, whole = Counter[str](), {graph.input}
        written = Counter[str]()
        for name, loads, (first, stop) in transferred(plan):
            if name in stored:
                (read if loads else written)[stored[name]] += stop - first
        whole |= {name for name, size in written.items() if size >= graph.tensors[name].size}
        again = goes_on(graph, whole)
        starts = started(graph, times)
        makers = {op.output: number for number, op in enumerate(graph.operators)}
        maps = {name: size for name, size in read.items() if name in makers}
        saved = [
            starts[max(number for number in again if number <= makers[name])] * size
            for name, size in maps.items()
        ]
        return cls(maps, again, sum(saved) / max(1, sum(maps.values())), times.makespan_us)


def goes_on(graph: Graph, whole: set[str]) -> list[int]:
    """Operators before which all that is live is among ``whole``."""
    last = {name: number for number, op in enumerate(graph.operators) for name in op.inputs}
    live, found = {graph.input}, list[int]()
    for number, op in enumerate(graph.operators):
        if live <= whole:
            found.append(number)
        live = {name for name in live | {op.output} if last.get(name, -1) > number}
    return found


def started(graph: Graph, times: Timeline) -> list[float]:
    """When each operator begins to compute, in microseconds."""
    begins = dict[str, float]()
    for number, step in enumerate(times.tasks):
        runs = times.task == number
        if step.kind == "compute" and runs.any():
            begin = float(np.min(times.start[runs]))
            begins[step.op] = min(begin, begins.get(step.op, begin))
    return [begins[op.output] for op in graph.operators]


def main(words: list[str]) -> None:
    sizes = [int(word) for word in words if word.isdigit()]
    print("| network, SRAM | maps from the card | goes on after | saved |")
    for name in [word for word in words if not word.isdigit()] or list(NETWORKS):
        graph = NETWORKS[name]()
        for sram_bytes in sizes or SIZES:
            hardware = replace(board_named("stm32f746g_sd"), sram_bytes=sram_bytes)
            plan = Swap().plan(graph, hardware)
            if roomy(plan) != plan:
                print(f"| {name}, {sram_bytes:,} B | does not fit |", flush=True)
                continue
            found = Repair.of(plan, graph, simulate(plan, graph, hardware))
            print(
                f"| {name}, {sram_bytes:,} B | {len(found.maps)} of {len(graph.operators) - 1}, "
                f"{sum(found.maps.values()) / 1e6:.2f} MB | {len(found.again) - 1} layers "
                f"| {found.saved_us / 1e6:.2f} of {found.makespan_us / 1e6:.2f} s |",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
