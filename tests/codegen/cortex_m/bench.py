"""``python -m tests.codegen.cortex_m.bench``: MLPerf Tiny on simulated cores, beside CMSIS-NN.

CMSIS-NN's figures are those that ``python -m tests.peers.cmsis_nn`` recorded, with the same
compiler, options, cycle model, weights and layers. Whole tensors on the fastest kernels that the
board has room for (``strategy.objective=latency``), image classification within 150 kB of flash,
too, and on kernels that need not be asked for (``memory``); and this project's portable C. "Limit"
is the share of a Cortex-M4's cycles that its products need at least, 0.5 each (``bench_rows
limit`` has it by layer). Of a Cortex-M0+ and M3 the own kernels, all passes, and portable C;
"published" are milliseconds that MLPerf Tiny v1.2 has of the M0+'s board (HALE), where ours are
modelled; "declared" are the kernels' own cycles, in which no input of a dense layer is the zero
point; inputs that are take less. Ends with 1 where a network takes more than CMSIS-NN does, image
classification in 150 kB more than 0.30 of that, one on a Cortex-M0+ more than 0.6, or on an M3 more
than 0.8.
"""

import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np

from pipeline import passes
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.importers.tflite import TFLite
from pipeline.kernels import Form, named
from pipeline.plan.vocabulary import Compute, Plan
from pipeline.strategies.base import Strategy
from pipeline.strategies.ordinary import Ordinary
from tests.importers.tflite_reference import frames
from tests.peers.recorded import MLPERF_TINY, board_of, cmsis_nn, recorded
from tests.public_models import MODELS, required
from tests.targets.cortex_m import board_named, built, outputs, simulated

FRAMES = 2
LIMIT = 0.5
"""Cycles a product: SMLAD adds two of them."""
PLAIN = ("constants", "fold_reshape", "fold_pad")
FLASH_BYTES, MOST = 150_000, 0.30
"""Limits for image classification: flash, and cycles on a Cortex-M4 as a share of the peer's."""
PASSES = {"without dead_channels": PLAIN, "all passes": (*PLAIN, "dead_channels")}


@dataclass(frozen=True)
class Run:
    """``cycles``: modelled, without flash waits."""

    instructions: int
    cycles: int

    def beside(self, peer: Self) -> str:
        return (
            f"{self.instructions:>11,} {self.instructions / peer.instructions:5.3f} "
            f"{self.cycles / 1e6:7.3f} {self.cycles / peer.cycles:5.3f}"
        )

    def each(self, macs: int) -> str:
        return f"{self.cycles / macs:7.2f} {LIMIT * macs / self.cycles:6.1%}"


CLASSIFIES = "pretrainedResnet_quant"
WITHIN = f"{FLASH_BYTES // 1000} kB of flash"
FASTEST = Ordinary(objective="latency")
PORTABLE = "portable C"
PEERS = {name: {core: Run(*cmsis_nn(name, core)) for core in recorded()["networks"][name]}
         for name in MLPERF_TINY}  # fmt: skip
MOST_THUMB = {"M0+": 0.6, "M3": 0.8}
PUBLISHED_MS = dict(zip(MLPERF_TINY, (1522, 1414, 475, 41), strict=True))


def run(
    graph: Graph, hardware: Hardware, plan: Plan | Strategy, folder: Path, count: int = FRAMES
) -> tuple[Run, int]:
    """Measure the median inference, and flash bytes; outputs are compared with the graph's."""
    plan = plan if isinstance(plan, Plan) else plan.plan(graph, hardware)
    size = built(folder, graph, hardware, plan)
    given = frames(graph, count)
    found = simulated(folder, graph, hardware, size, given)
    if not np.array_equal(outputs(graph, found), graph.evaluate(given)):
        sys.exit(f"{graph.name} on {hardware.title}: outputs differ from the graph's")
    assert found.instructions is not None
    modelled = found.modelled_cycles or {"median": 0}
    return Run(int(np.median(found.instructions)), modelled["median"]), size.flash_bytes


def row(graph: Graph, strategy: Strategy, **changes: object) -> tuple[list[Run], float, int]:
    """On an M4 and an M7; and milliseconds and bytes of flash of the M4's board, with its waits."""
    m4, m7 = (board_named(name, **changes) for name in ("nucleo_l4r5zi", "nucleo_f767zi"))
    boards = (without_waits(m4), without_waits(m7), m4)
    with tempfile.TemporaryDirectory(prefix="thimble.") as name:
        runs = [run(graph, each, strategy, Path(name) / str(n)) for n, each in enumerate(boards)]
    *cores, (board, _) = runs
    return [found for found, _ in cores], board.cycles / m4.clock_hz * 1e3, runs[0][1]


def without_waits(hardware: Hardware) -> Hardware:
    return replace(hardware, flash_timing=replace(hardware.flash_timing, wait_states=0))


def distinct(model: str) -> list[tuple[str, Graph]]:
    """The network by each choice of passes, those that are the same once."""
    source = TFLite(path=str(MODELS / f"{model}.tflite")).graph()
    graphs = {name: passes.applied(source, chosen) for name, chosen in PASSES.items()}
    return list({graph.hash: (name, graph) for name, graph in graphs.items()}.values())


def main() -> int:
    required()
    print("cycles are modelled; the M7's model is unvalidated: it was never compared with a core")
    print(f"{'network':44} {'M4 instr.':>11} ratio Mcycles ratio per MAC  limit   M7 instr. ratio "
          "Mcycles ratio L4R5 ms M4 flash")  # fmt: skip
    slower = False
    for model, peer in PEERS.items():
        cases = [(name, graph, FASTEST, {}) for name, graph in distinct(model)]
        whole = cases[0][1]
        if model == CLASSIFIES:
            cases.append((WITHIN, whole, FASTEST, {"flash_bytes": FLASH_BYTES}))
            cases.append(("objective=memory", whole, Ordinary(), {}))
        theirs = peer["M4"], peer["M7"]
        line = f"{theirs[0].beside(theirs[0])} {theirs[0].each(whole.macs)}"
        print(f"{f'{model}, CMSIS-NN':44} {line}", flush=True)
        cases.insert(0, (PORTABLE, whole, Ordinary(), {"kernels": "portable"}))
        for name, graph, strategy, changes in cases:
            (m4, m7), board_ms, flash_bytes = row(graph, strategy, **changes)
            figures = f"{m4.beside(theirs[0])} {m4.each(graph.macs)} {m7.beside(theirs[1])}"
            print(f"{f'{model}, {name}':44} {figures} {board_ms:7.1f} {flash_bytes:8,}", flush=True)
            slower |= name != PORTABLE and any(
                found.instructions > other.instructions or found.cycles > other.cycles
                for found, other in zip((m4, m7), theirs, strict=True)
            )
            if name == WITHIN and m4.cycles > MOST * theirs[0].cycles:
                print(f"more than {MOST} of CMSIS-NN's cycles in {FLASH_BYTES:,} B of flash")
                slower = True
    for core in MOST_THUMB:
        slower |= on_thumb(core)
    if slower:
        print("slower than it has to be somewhere: a ratio above 1, or what is said above")
    return int(slower)


def declared(graph: Graph, hardware: Hardware) -> float:
    """Cycles, as the kernels say."""
    plan = Ordinary().plan(graph, hardware)
    steps = [step for step in plan.tracks[0].steps if isinstance(step, Compute)]
    forms = [(step.kernel, Form.of(step, plan.buffer, graph)) for step in steps]
    return sum(named(kernel, form, hardware).cycles(form) for kernel, form in forms)


def on_thumb(core: str) -> bool:
    """Check whether a network takes too much of a core without DSP extension."""
    board, most = board_of(core), 0.0
    print(f"{core}: cycles and ms are modelled, unvalidated: never compared with this core")
    print(f"{'network':48} {'instructions':>12} ratio Mcycles ratio declared {'ms':>7} published   "
          "flash")  # fmt: skip
    for model, peers in PEERS.items():
        peer = peers[core]
        print(f"{f'{model}, CMSIS-NN':48} {peer.beside(peer)}", flush=True)
        cases = [(name, graph, board) for name, graph in distinct(model)]
        cases.append((PORTABLE, cases[0][1], replace(board, kernels="portable")))
        for number, (name, graph, hardware) in enumerate(cases):
            with tempfile.TemporaryDirectory(prefix="thimble.") as folder:
                found, _ = run(graph, without_waits(hardware), Ordinary(), Path(folder) / "1")
                waiting, flash_bytes = run(graph, hardware, Ordinary(), Path(folder) / "2")
            says = f"{declared(graph, hardware) / 1e6:.2f}" if hardware is board else ""
            published = f"{PUBLISHED_MS[model]:,}" if core == "M0+" else ""
            print(
                f"{f'{model}, {name}':48} {found.beside(peer)} {says:>8} "
                f"{waiting.cycles / hardware.clock_hz * 1e3:7.1f} {published:>9} "
                f"{flash_bytes:7,}", flush=True,
            )  # fmt: skip
            if number == 0:
                most = max(most, found.instructions / peer.instructions, found.cycles / peer.cycles)
    if most > MOST_THUMB[core]:
        print(f"more than {MOST_THUMB[core]} of what CMSIS-NN takes somewhere")
    return most > MOST_THUMB[core]


if __name__ == "__main__":
    sys.exit(main())
