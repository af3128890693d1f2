"""``python -m tests.strategies.partial.bench``: instructions of partial execution with sums of 8
and 16 bits over those of whole tensors one after the other, on a simulated Cortex-M4, of the four
networks of Pex or of those that are named. Weights are PyTorch's initial ones; MobileNetV2 has two
classes, so that its weights fit the simulated core's flash. Every output is compared with the
interpreter's.

Ends with 1 where a plan takes more than ``MOST`` of the ordinary one, or more memory than Pex says.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.models.network import state_arrays
from pipeline.plan.calibrate import calibrated
from pipeline.plan.cost import cost
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Plan
from pipeline.quantize.int8 import Int8
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from tests.codegen.cortex_m.bench_rows import FLASH_BYTES, RAM_BYTES
from tests.importers.tflite_reference import frames
from tests.models.counting import member
from tests.targets.cortex_m import board_named, built, outputs, simulated

MOST, AIM = 1.15, 1.05

MODELS: dict[str, tuple[str, dict[str, object]]] = {
    "mobilenet_v2_160": ("mobilenet_v2", {"input_shape": [160, 160, 3], "classes": 2}),
    "mobilenet_v2_224": ("mobilenet_v2", {"classes": 2}),
    "micronet_kws_l": ("micronet_kws_l", {}),
    "res15": ("res15", {}),
}
PEAKS: dict[str, dict[int, int]] = {
    "mobilenet_v2_160": {16: 294_400, 8: 192_000},
    "mobilenet_v2_224": {16: 577_024, 8: 376_320},
    "micronet_kws_l": {16: 69_000, 8: 65_750},
    "res15": {16: 66_150, 8: 44_590},
}
"""Bytes, by the bits of sums."""


def network(name: str) -> Graph:
    model, changes = MODELS[name]
    made = member(model, **changes)
    return Int8(images=1).graph(name, made, state_arrays(made.build()), {})


def instructions(graph: Graph, hardware: Hardware, plan: Plan) -> int:
    given = frames(graph, 1)
    with tempfile.TemporaryDirectory(prefix="thimble.") as folder:
        size = built(Path(folder), graph, hardware, plan)
        found = simulated(Path(folder), graph, hardware, size, given)
    if not np.array_equal(outputs(graph, found)[0], interpret(plan, graph, given[0]).output):
        sys.exit(f"{graph.name} on {hardware.title}: outputs differ from the interpreter's")
    return int(np.median(found.instructions))


def main(arguments: list[str]) -> int:
    board = board_named("nucleo_l4r5zi", sram_bytes=RAM_BYTES, flash_bytes=FLASH_BYTES)
    print(f"{'network':18} {'bits':>8} {'pmu B':>9} {'published':>9} {'sums':>4} "
          f"{'instructions':>13} ratio")  # fmt: skip
    missed = False
    for name in arguments or MODELS:
        graph = network(name)
        plan = Ordinary().plan(graph, board)
        whole, pmu = instructions(graph, board, plan), cost(plan, graph, board).pmu_bytes
        print(f"{name:18} {'ordinary':>8} {pmu:9,.0f} {'':9} {'':4} {whole:13,} 1.000", flush=True)
        for bits, peak in PEAKS[name].items():
            strategy = Partial(accumulator_bits=bits)  # type: ignore[arg-type]
            plan = calibrated(strategy.plan(graph, board), graph, frames(graph, 2))
            pmu = cost(plan, graph, board, verify(plan, graph)).pmu_bytes
            taken, sums = instructions(graph, board, plan), dict(plan.notes)["accumulate_layers"]
            ratio = taken / whole
            missed |= ratio > MOST or pmu > peak
            says = "" if ratio <= AIM else "  above the aim" if ratio <= MOST else "  TOO MANY"
            print(f"{name:18} {bits:8} {pmu:9,.0f} {peak:9,} {sums:4} {taken:13,} "
                  f"{ratio:.3f}{says}", flush=True)  # fmt: skip
    return int(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
