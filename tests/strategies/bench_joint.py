"""``python -m tests.strategies.bench_joint``: how much memory the joint schedule takes, of ten
networks or of those that are named, with the input held and streamed, on a NUCLEO-L4R5ZI whatever
its size. Beside it the least peak of an order of rows with channels last, and how far above that
the addresses end; below it, where rows in blocks of pixels need nothing kept aside. ``any plan``:
what none can go below that computes nothing twice. Then how much it takes where some of the
multiply–accumulates may be repeated.

Ends with 1 where a network takes more than what it has to hold, where its arena is too large for
its tensors, or where addresses cost more than
``MEAN`` of that bound in the mean, or ``WORST``.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from math import inf
from typing import NamedTuple

from pipeline import passes
from pipeline.graph.graph import Graph
from pipeline.importers.tflite import TFLite
from pipeline.models.network import state_arrays
from pipeline.plan.cost import Cost, cost
from pipeline.plan.fit import roomy
from pipeline.plan.verify import verify
from pipeline.quantize.int8 import Int8
from pipeline.schedules.lower import needed
from pipeline.search.lower_bound import lower_bound
from pipeline.strategies.joint import Joint
from tests.models.counting import member
from tests.public_models import MODELS, required
from tests.targets.cortex_m import board_named

PASSES = ("constants", "fold_reshape", "fold_pad")

MOST: dict[str, tuple[int, int]] = {
    "kws_ref_model": (3_708, 3_400),
    "pretrainedResnet_quant": (9_984, 8_768),
    "vww_96_int8": (27_776, 9_920),
    "res15": (30_400, 30_400),
    "micronet_kws_l": (27_800, 27_500),
    "mobilenet_v2_160": (104_300, 70_900),
    "mobilenet_v2_224": (189_000, 104_900),
    "mobilenet_v2_w035_144": (65_200, 23_400),
    "mcunet_s": (80_100, 52_900),
    "mcunet_5fps": (29_600, 15_700),
}
"""Bytes with the input held, and streamed."""

BOUND: dict[str, tuple[int, int]] = {
    "kws_ref_model": (3_674, 3_344),
    "pretrainedResnet_quant": (9_824, 8_672),
    "vww_96_int8": (27_752, 9_904),
    "res15": (30_105, 30_105),
    "micronet_kws_l": (25_385, 25_105),
    "mobilenet_v2_160": (101_696, 64_256),
    "mobilenet_v2_224": (185_344, 97_088),
    "mobilenet_v2_w035_144": (64_528, 22_944),
    "mcunet_s": (79_376, 52_864),
    "mcunet_5fps": (29_200, 14_912),
}
"""Bytes that rows with channels last hold at most: no addresses are better."""

ROOM = {
    "kws_ref_model": 1.3, "pretrainedResnet_quant": 1.4, "vww_96_int8": 1.3,
    "mobilenet_v2_160": 1.3, "mobilenet_v2_224": 1.3,
}  # fmt: skip
"""Times ``pmu_bytes`` that the arena may be, scratch and alignment included."""

MEAN, WORST = 0.035, 0.105
"""Of the bound, that addresses may cost."""

MOST_REPEATED: dict[tuple[str, float], int] = {
    ("mobilenet_v2_w035_144", 0.1): 17_000,
    ("mobilenet_v2_w035_144", 0.3): 15_000,
    ("mobilenet_v2_224", 0.1): 84_000,
    ("mobilenet_v2_224", 0.3): 58_000,
}
"""Bytes with the input streamed, by the share of the multiply–accumulates that may be repeated."""

FILES = ("kws_ref_model", "pretrainedResnet_quant", "vww_96_int8")

MOBILENETS: dict[str, dict[str, object]] = {
    "mobilenet_v2_160": {"input_shape": [160, 160, 3], "classes": 2},
    "mobilenet_v2_224": {},
    "mobilenet_v2_w035_144": {"input_shape": [144, 144, 3], "width": 0.35},
}


def network(name: str) -> Graph:
    """With PyTorch's initial weights, unless it comes from a file."""
    path = MODELS / f"{name}.tflite"
    if path.is_file():
        return passes.applied(TFLite(path=str(path)).graph(), list(PASSES))
    changes = MOBILENETS.get(name)
    model = member(name) if changes is None else member("mobilenet_v2", **changes)
    graph = Int8(images=1).graph(name, model, state_arrays(model.build()), {})
    return passes.applied(graph, list(PASSES))


class Planned(NamedTuple):
    cost: Cost
    seconds: float


def planned(graph: Graph, streamed: bool, extra_macs: float = 0.0) -> Planned:
    board = replace(board_named("nucleo_l4r5zi"), streams_input=streamed)
    begin = time.process_time()
    plan = roomy(Joint(extra_macs=extra_macs).plan(graph, board))
    seconds = time.process_time() - begin
    return Planned(cost(plan, graph, board, verify(plan, graph)), seconds)


def main(arguments: list[str]) -> int:
    names = arguments or list(MOST)
    if {*names} & {*FILES}:
        required()
    print(f"{'network':24} {'input':9} {'pmu B':>8} {'most':>8} {'bound':>8} {'above':>7} "
          f"{'any plan':>8} {'arena B':>8} {'planned s':>10}")  # fmt: skip
    more, above = 0, list[float]()
    for name in names:
        graph = network(name)
        for streamed, most, bound in zip((False, True), MOST[name], BOUND[name], strict=True):
            found, seconds = planned(graph, streamed)
            more += found.pmu_bytes > most
            more += found.arena_bytes > ROOM.get(name, inf) * found.pmu_bytes
            above.append(found.pmu_bytes / bound - 1)
            proved = lower_bound(graph, needed(graph), streamed).bytes
            print(f"{name:24} {'streamed' if streamed else 'held':9} {found.pmu_bytes:8,.0f} "
                  f"{most:8,} {bound:8,} {above[-1]:7.1%} {proved:8,.0f} {found.arena_bytes:8,} "
                  f"{seconds:10.1f}", flush=True)  # fmt: skip
    mean, worst = sum(above) / len(above), max(above)
    print(f"above the bound: {mean:.1%} in the mean (at most {MEAN:.1%}), {worst:.1%} at worst "
          f"({WORST:.1%})")  # fmt: skip
    return int(more > 0 or mean > MEAN or worst > WORST) | with_work_repeated(names)


def with_work_repeated(names: list[str]) -> int:
    """1 where one takes more than it has to hold, or repeats more than it may."""
    asked, more = [key for key in MOST_REPEATED if key[0] in names], 0
    if asked:
        print(f"\n{'network':24} {'extra_macs':>10} {'repeated':>9} {'pmu B':>8} {'most':>8} "
              f"{'arena B':>8} {'planned s':>10}")  # fmt: skip
    for name, share in asked:
        (found, seconds), most = planned(network(name), True, share), MOST_REPEATED[name, share]
        again = found.macs_executed / found.macs - 1
        more += found.pmu_bytes > most or again > share
        print(f"{name:24} {share:10.0%} {again:9.1%} {found.pmu_bytes:8,.0f} {most:8,} "
              f"{found.arena_bytes:8,} {seconds:10.1f}", flush=True)  # fmt: skip
    return int(more > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
