"""``python -m tests.kernels.bench``: cycles of the layers of ``cycles.json`` on simulated cores
without flash waits, one kernel each, written there, beside what ``pipeline/kernels`` says of them,
which is fitted to that. Of all kernels, or of those that are named, such as
``cortex_m.row_depthwise``, and of layers that were added without their cycles."""

import json
import sys
import tempfile
from pathlib import Path

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import named
from pipeline.kernels.cortex_m.costs import CORES
from pipeline.plan.vocabulary import Compute, Plan
from pipeline.targets.toolchain import Size
from tests.codegen.cortex_m.bench import without_waits
from tests.codegen.cortex_m.support import core
from tests.importers.tflite_reference import frames
from tests.kernels.layers import RECORDED, Layer, cores, form_of, recorded
from tests.targets.cortex_m import board_named, built, simulated


def cycles(layer: Layer, hardware: Hardware) -> tuple[float, int]:
    """Measure a pass: what an inference takes less without it. Its call is there once, as compilers
    make the most of that in portable C. And the bytes of code of a kernel that makes rows."""
    graph = layer.graph()
    plan = layer.plan(graph, hardware)
    taken, size = _cycles(graph, plan, hardware)
    if layer.adding or len(graph.operators) > 1:
        taken -= _cycles(graph, layer.plan(graph, hardware, runs=False), hardware)[0]
    return taken / layer.passes(), code_bytes(size, layer.step(plan))


def code_bytes(size: Size, step: Compute) -> int:
    """Add up the bytes of the functions that make a row."""
    return sum(n for name, n in size.functions.items() if f"_{step.op}_row" in name)


def _cycles(graph: Graph, plan: Plan, hardware: Hardware) -> tuple[int, Size]:
    with tempfile.TemporaryDirectory(prefix="thimble.") as name:
        size = built(Path(name), graph, hardware, plan)
        runs = simulated(Path(name), graph, hardware, size, frames(graph, 1))
    assert runs.modelled_cycles is not None
    return runs.modelled_cycles["median"], size


NAMES = ("nucleo_l4r5zi", "nucleo_f767zi", "nucleo_u575zi", "nucleo_g0b1re")
BOARDS = dict(zip((*CORES, "cortex-m0plus"), NAMES, strict=True))


def main(names: list[str]) -> int:
    boards = {cpu: without_waits(board_named(name)) for cpu, name in BOARDS.items()}
    rows = []
    for layer, (taken, code) in recorded():
        if not names or layer.kernel in names or not taken:
            found = [cycles(layer, boards[cpu]) for cpu in cores(layer)]
            taken, code = [round(each) for each, _ in found], found[0][1]
            errors = (
                f"{modelled(layer, cpu) / each - 1:+7.1%} of {each:9,}"
                for cpu, each in zip(cores(layer), taken, strict=True)
            )
            print(*errors, layer.fields(), flush=True)
        rows.append({**layer.fields(), "cycles": taken, **({"code_bytes": code} if code else {})})
    text = ",\n".join(json.dumps(row) for row in rows)
    RECORDED.write_text(f"[\n{text}\n]\n")
    return 0


def modelled(layer: Layer, cpu: str) -> float:
    """Cycles of the layer, as its kernel says."""
    form = form_of(layer)
    return named(layer.kernel, form, core(cpu)).cycles(form)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
