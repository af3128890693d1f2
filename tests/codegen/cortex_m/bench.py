"""``python -m tests.codegen.cortex_m.bench``: MLPerf Tiny on simulated cores, beside CMSIS-NN.

CMSIS-NN's figures: its head 99f736a, built outside of this repository with the same compiler (gcc
12.2), options and cycle model, for the same weights, layers and inputs. Ends with 1 where a network
takes more than it does.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pipeline import passes
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.importers.tflite import TFLite
from tests.importers.test_tflite import MODELS
from tests.importers.tflite_reference import frames
from tests.targets.cortex_m import board_named, built, outputs, simulated

FRAMES = 2
PLAIN = ("constants", "fold_reshape", "fold_pad")
PASSES = {"without dead_channels": PLAIN, "all passes": (*PLAIN, "dead_channels")}


@dataclass(frozen=True)
class Run:
    """``cycles``: modelled, without flash waits."""

    instructions: int
    cycles: int

    def beside(self, peer: Run) -> str:
        return (
            f"{self.instructions:>10,} {self.instructions / peer.instructions:5.3f} "
            f"{self.cycles / 1e6:7.3f} {self.cycles / peer.cycles:5.3f}"
        )


@dataclass(frozen=True)
class Peer:
    """On a Cortex-M4 and an M7."""

    m4: Run
    m7: Run


PEERS = {
    "pretrainedResnet_quant": Peer(Run(29_858_592, 36_862_995), Run(30_021_378, 22_921_181)),
    "vww_96_int8": Peer(Run(24_092_870, 29_570_497), Run(24_016_374, 17_916_977)),
    "kws_ref_model": Peer(Run(7_696_349, 9_300_826), Run(7_642_116, 5_572_926)),
    "ad01_int8": Peer(Run(580_088, 722_153), Run(580_339, 416_705)),
}


def run(graph: Graph, hardware: Hardware, folder: Path) -> Run:
    """Of the median inference; every output is compared with the graph's."""
    size = built(folder, graph, hardware)
    given = frames(graph, FRAMES)
    found = simulated(folder, graph, hardware, size, given)
    if not np.array_equal(outputs(graph, found), graph.outputs(given)):
        sys.exit(f"{graph.name} on {hardware.title}: outputs differ from the graph's")
    assert found.instructions is not None
    modelled = found.modelled_cycles or {"median": 0}
    return Run(int(np.median(found.instructions)), modelled["median"])


@dataclass(frozen=True)
class Row:
    m4: Run
    m7: Run
    board_ms: float

    @classmethod
    def of(cls, graph: Graph, folder: Path) -> Row:
        m4, m7 = board_named("nucleo_l4r5zi"), board_named("nucleo_f767zi")
        runs = (
            run(graph, hardware, folder / f"{number}")
            for number, hardware in enumerate((without_waits(m4), without_waits(m7), m4))
        )
        first, second, board = runs
        return cls(first, second, board.cycles / m4.clock_hz * 1e3)

    def slower(self, peer: Peer) -> bool:
        pairs = ((self.m4, peer.m4), (self.m7, peer.m7))
        return any(
            ours.instructions > theirs.instructions or ours.cycles > theirs.cycles
            for ours, theirs in pairs
        )


def without_waits(hardware: Hardware) -> Hardware:
    return replace(hardware, flash_timing=replace(hardware.flash_timing, wait_states=0))


def main() -> int:
    if not MODELS.is_dir():
        print(f"MLPerf Tiny's models are not in {MODELS}: set THIMBLE_MODELS")
        return 0
    print(f"{'network':44} {'M4 instr.':>10} ratio Mcycles ratio  M7 instr. ratio Mcycles ratio "
          "L4R5 ms")  # fmt: skip
    slower = False
    for model, peer in PEERS.items():
        source = TFLite(path=str(MODELS / f"{model}.tflite")).graph()
        graphs = {name: passes.applied(source, chosen) for name, chosen in PASSES.items()}
        distinct = {graph.hash: f"{model}, {name}" for name, graph in graphs.items()}
        for name, graph in graphs.items():
            if distinct[graph.hash] == f"{model}, {name}":
                with tempfile.TemporaryDirectory(prefix="thimble.") as folder:
                    row = Row.of(graph, Path(folder))
                figures = f"{row.m4.beside(peer.m4)} {row.m7.beside(peer.m7)} {row.board_ms:7.1f}"
                print(f"{distinct[graph.hash]:44} {figures}", flush=True)
                slower |= row.slower(peer)
    if slower:
        print("slower than CMSIS-NN somewhere: a ratio is above 1")
    return int(slower)


if __name__ == "__main__":
    sys.exit(main())
