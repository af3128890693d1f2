"""``python -m tests.codegen.bench_tape``: networks row by row, from a tape and by straight calls.

Rows on demand, in blocks of pixels, on a simulated Cortex-M4 without flash waits. A step's
instructions are those that the tape takes more than straight calls do; cycles are beside those of
whole layers.
"""

import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline import passes
from pipeline.codegen import generate, tape
from pipeline.graph.graph import Graph
from pipeline.importers.tflite import TFLite
from pipeline.plan.vocabulary import Plan
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.cortex_m.bench import PASSES, Run, run, without_waits
from tests.codegen.cortex_m.support import by_rows
from tests.public_models import MODELS, required
from tests.targets.cortex_m import board_named

NETWORKS = ("kws_ref_model", "vww_96_int8", "pretrainedResnet_quant")
BOARD = without_waits(board_named("nucleo_l4r5zi"))


def ran(graph: Graph, plan: Plan) -> tuple[Run, int]:
    """Run it; return what it takes, and bytes of flash."""
    with tempfile.TemporaryDirectory(prefix="thimble.") as folder:
        return run(graph, BOARD, plan, Path(folder))


@contextmanager
def straight() -> Iterator[None]:
    """Programs have no tape."""
    kept, tape.LEAST_GAIN_BYTES = tape.LEAST_GAIN_BYTES, 1 << 30
    yield
    tape.LEAST_GAIN_BYTES = kept


def row(graph: Graph) -> str:
    plan = by_rows(graph, BOARD)
    source = generate(graph, plan, BOARD, {})["model.c"]
    functions = len(re.findall(r"^static .*NN_KERNEL void \w+\(", source, re.MULTILINE))
    kind, entries = re.findall(r"const uint(\d+)_t nn_tape\[(\d+)\]", source)[0]
    steps, (taped, taped_bytes) = len(plan.tracks[0].steps), ran(graph, plan)
    whole, _ = ran(graph, Ordinary().plan(graph, BOARD))
    with straight():
        called, called_bytes = ran(graph, plan)
    return (
        f"{len(graph.operators):>9} {functions:>9} {steps:>6} {int(entries) * int(kind) // 8:>7,} "
        f"{called_bytes - taped_bytes:>8,} "
        f"{(taped.instructions - called.instructions) / steps:>9.1f} "
        f"{taped.cycles / whole.cycles:>7.3f}"
    )


def main() -> int:
    required()
    print(f"{'row by row':24} operators functions  steps  tape B  saves B  a step's   cycles")
    for model in NETWORKS:
        graph = TFLite(path=str(MODELS / f"{model}.tflite")).graph()
        print(f"{model:24} {row(passes.applied(graph, PASSES['all passes']))}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
