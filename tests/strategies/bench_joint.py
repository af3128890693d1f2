"""``python -m tests.strategies.bench_joint``: how much memory the joint schedule takes, of ten
networks or of those that are named, with the input held and streamed, on a NUCLEO-L4R5ZI whatever
its size. Beside it the least peak of an order of rows with channels last, and how far above that
the addresses end; below it, where rows in blocks of pixels need nothing kept aside. ``any plan``:
what none can go below that computes nothing twice. Then how much it takes where some of the
multiply–accumulates may be repeated.

Ends with 1 where a network takes more than what it has to hold, where its arena is too large for
its tensors, or where addresses cost more than ``WORST`` of that bound, or ``MEAN`` of those of all.
"""

import sys
import time
from dataclasses import replace
from math import inf

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

MOST: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {
    "kws_ref_model": ((3_708, 3_674), (3_400, 3_344)),
    "pretrainedResnet_quant": ((9_984, 9_824), (8_768, 8_672)),
    "vww_96_int8": ((27_776, 27_752), (9_920, 9_904)),
    "res15": ((30_400, 30_105), (30_400, 30_105)),
    "micronet_kws_l": ((27_800, 25_385), (27_500, 25_105)),
    "mobilenet_v2_160": ((104_300, 101_696), (70_900, 64_256)),
    "mobilenet_v2_224": ((189_000, 185_344), (104_900, 97_088)),
    "mobilenet_v2_w035_144": ((65_200, 64_528), (23_400, 22_944)),
    "mcunet_s": ((80_100, 79_376), (52_900, 52_864)),
    "mcunet_5fps": ((29_600, 29_200), (15_700, 14_912)),
}
"""Bytes with the input held, and streamed; beside what rows with channels last hold at most."""

ROOM = {
    "kws_ref_model": 1.3, "pretrainedResnet_quant": 1.4, "vww_96_int8": 1.3,
    "mobilenet_v2_160": 1.3, "mobilenet_v2_224": 1.3,
}  # fmt: skip
"""Times ``pmu_bytes`` that the arena may be, scratch and alignment included."""

MEAN, WORST = 0.035, 0.105
"""Shares of the bound that addresses may cost, in the mean of all and at worst."""

MOST_REPEATED: dict[str, dict[float, int]] = {
    "mobilenet_v2_w035_144": {0.1: 11_900, 0.3: 11_900},
    "mobilenet_v2_224": {0.1: 84_000, 0.3: 58_000},
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
        graph = TFLite(path=str(path)).graph()
    else:
        changes = MOBILENETS.get(name)
        model = member(name) if changes is None else member("mobilenet_v2", **changes)
        graph = Int8(images=1).graph(name, model, state_arrays(model.build()), {})
    return passes.applied(graph, ["constants", "fold_reshape", "fold_pad"])


def planned(graph: Graph, streamed: bool, extra_macs: float = 0.0) -> tuple[Cost, float]:
    """And the seconds that it took to plan."""
    board = replace(board_named("nucleo_l4r5zi"), streams_input=streamed)
    begin = time.process_time()
    plan = roomy(Joint(extra_macs=extra_macs).plan(graph, board))
    seconds = time.process_time() - begin
    return cost(plan, graph, board, verify(plan, graph)), seconds


def main(arguments: list[str]) -> int:
    names = arguments or list(MOST)
    if {*names} & {*FILES}:
        required()
    print(f"{'network':24} {'input':9} {'pmu B':>8} {'most':>8} {'bound':>8} {'above':>7} "
          f"{'any plan':>8} {'arena B':>8} {'planned s':>10}")  # fmt: skip
    more, above = False, list[float]()
    for name in names:
        graph = network(name)
        for streamed, (most, bound) in zip((False, True), MOST[name], strict=True):
            found, seconds = planned(graph, streamed)
            above.append(found.pmu_bytes / bound - 1)
            more |= found.pmu_bytes > most or above[-1] > WORST
            more |= found.arena_bytes > ROOM.get(name, inf) * found.pmu_bytes
            proved = lower_bound(graph, needed(graph), streamed).bytes
            print(f"{name:24} {'streamed' if streamed else 'held':9} {found.pmu_bytes:8,.0f} "
                  f"{most:8,} {bound:8,} {above[-1]:7.1%} {proved:8,.0f} {found.arena_bytes:8,} "
                  f"{seconds:10.1f}", flush=True)  # fmt: skip
    mean = sum(above) / len(above)
    print(f"above the bound: {mean:.1%} in the mean (at most {MEAN:.1%} of all), {max(above):.1%} "
          f"at worst ({WORST:.1%})\n")  # fmt: skip
    for name in [name for name in names if name in MOST_REPEATED]:
        for share, most in MOST_REPEATED[name].items():
            found, seconds = planned(network(name), True, share)
            again = found.macs_executed / found.macs - 1
            more |= found.pmu_bytes > most or again > share
            print(f"{name:24} {again:.1%} of at most {share:.0%} repeated, {found.pmu_bytes:,.0f} "
                  f"of at most {most:,} B, arena {found.arena_bytes:,} B, planned in "
                  f"{seconds:.1f} s", flush=True)  # fmt: skip
    return int(more or (not arguments and mean > MEAN))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
