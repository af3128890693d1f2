"""``python -m tests.codegen.thumb.bench``: MLPerf Tiny on a simulated Cortex-M0+, beside CMSIS-NN.

CMSIS-NN's instructions are those that ``python -m tests.peers.cmsis_nn`` recorded, with the same
compiler, options, weights and layers; "published" are milliseconds that
MLPerf Tiny v1.2 has of the same board (HALE), where ours are modelled. Whole tensors, on the core's
own kernels and on portable C; every output is compared with the graph's. "Declared" are the
kernels' own cycles, in which no input of a dense layer is the zero point; inputs that are take
less. Ends with 1 where a network takes more than 0.6 of CMSIS-NN's instructions.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from pipeline import passes
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.importers.tflite import TFLite
from pipeline.kernels import Form, named
from pipeline.plan.vocabulary import Compute
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.cortex_m.bench import PASSES, Run, run, without_waits
from tests.peers.recorded import MLPERF_TINY, cmsis_nn
from tests.public_models import MODELS, required
from tests.targets.cortex_m import board_named

BOARD = "nucleo_g0b1re"
MOST = 0.6


@dataclass(frozen=True)
class Peer:
    """Instructions of CMSIS-NN, and published milliseconds."""

    instructions: int
    published_ms: float


PEERS = {
    name: Peer(cmsis_nn(name, "M0+")[0], published_ms)
    for name, published_ms in zip(MLPERF_TINY, (1522, 1414, 475, 41), strict=True)
}


def declared(graph: Graph, hardware: Hardware) -> float:
    """Cycles, as the kernels say."""
    plan = Ordinary().plan(graph, hardware)
    steps = [step for step in plan.tracks[0].steps if isinstance(step, Compute)]
    forms = [(step.kernel, Form.of(step, plan.buffer, graph)) for step in steps]
    return sum(named(kernel, form, hardware).cycles(form) for kernel, form in forms)


def measured(graph: Graph, hardware: Hardware) -> tuple[Run, Run, int]:
    """Without flash waits, and with; bytes of flash."""
    runs, flash_bytes = [], 0
    for board in (without_waits(hardware), hardware):
        with tempfile.TemporaryDirectory(prefix="thimble.") as folder:
            found, flash_bytes = run(graph, board, Ordinary(), Path(folder))
        runs.append(found)
    return runs[0], runs[1], flash_bytes


def main() -> int:
    required()
    board, most = board_named(BOARD), 0.0
    print("cycles and ms are modelled, unvalidated: the model was never compared with this core")
    print(f"{'network':48} {'instructions':>12} ratio Mcycles declared {'ms':>7} published   flash")
    for model, peer in PEERS.items():
        print(f"{f'{model}, CMSIS-NN':48} {peer.instructions:>12,}", flush=True)
        source = TFLite(path=str(MODELS / f"{model}.tflite")).graph()
        graphs = {name: passes.applied(source, chosen) for name, chosen in PASSES.items()}
        distinct = {graph.hash: (name, graph) for name, graph in graphs.items()}
        plain, graph = next(iter(distinct.values()))
        cases = [("portable C", graph, replace(board, kernels="portable"))]
        cases += [(name, graph, board) for name, graph in distinct.values()]
        for name, graph, hardware in cases:
            found, waiting, flash_bytes = measured(graph, hardware)
            ratio = found.instructions / peer.instructions
            says = f"{declared(graph, hardware) / 1e6:.2f}" if hardware is board else ""
            print(
                f"{f'{model}, {name}':48} {found.instructions:>12,} {ratio:5.3f} "
                f"{found.cycles / 1e6:7.2f} {says:>8} "
                f"{waiting.cycles / hardware.clock_hz * 1e3:7.1f} {peer.published_ms:9,.0f} "
                f"{flash_bytes:7,}", flush=True,
            )  # fmt: skip
            if name == plain:
                most = max(most, ratio)
    if most > MOST:
        print(f"more than {MOST} of CMSIS-NN's instructions somewhere")
    return int(most > MOST)


if __name__ == "__main__":
    sys.exit(main())
