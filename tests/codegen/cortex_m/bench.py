"""``python -m tests.codegen.cortex_m.bench``: MLPerf Tiny on simulated cores, beside CMSIS-NN.

CMSIS-NN's figures: its head 99f736a, built outside of this repository with the same compiler (gcc
12.2), options and cycle model, for the same weights, layers and inputs.
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
class Peer:
    """Instructions on a Cortex-M4 and an M7; modelled cycles of the M4 without flash waits."""

    m4: int
    m7: int
    cycles: int


PEERS = {
    "pretrainedResnet_quant": Peer(29_858_592, 30_021_378, 36_862_995),
    "vww_96_int8": Peer(24_092_870, 24_016_374, 29_570_497),
    "kws_ref_model": Peer(7_696_349, 7_642_116, 9_300_826),
    "ad01_int8": Peer(580_088, 580_339, 722_153),
}


@dataclass(frozen=True)
class Run:
    instructions: int
    cycles: int


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


def row(label: str, graph: Graph, peer: Peer, folder: Path) -> str:
    m4, m7 = board_named("nucleo_l4r5zi"), board_named("nucleo_f767zi")
    quick = replace(m4, flash_timing=replace(m4.flash_timing, wait_states=0))
    bare, board, other = (
        run(graph, hardware, folder / f"{number}")
        for number, hardware in enumerate((quick, m4, m7))
    )
    return (
        f"{label:44} {bare.instructions:>10,} {bare.instructions / peer.m4:5.3f} "
        f"{bare.cycles / 1e6:7.3f} {bare.cycles / peer.cycles:5.3f} "
        f"{board.cycles / m4.clock_hz * 1e3:7.1f} {other.instructions:>10,} "
        f"{other.instructions / peer.m7:5.3f}"
    )


def main() -> int:
    if not MODELS.is_dir():
        print(f"MLPerf Tiny's models are not in {MODELS}: set THIMBLE_MODELS")
        return 0
    print(f"{'network':44} {'M4 instr.':>10} ratio Mcycles ratio L4R5 ms  M7 instr. ratio")
    for model, peer in PEERS.items():
        source = TFLite(path=str(MODELS / f"{model}.tflite")).graph()
        graphs = {name: passes.applied(source, chosen) for name, chosen in PASSES.items()}
        distinct = {graph.hash: f"{model}, {name}" for name, graph in graphs.items()}
        for name, graph in graphs.items():
            if distinct[graph.hash] == f"{model}, {name}":
                with tempfile.TemporaryDirectory(prefix="thimble.") as folder:
                    print(row(distinct[graph.hash], graph, peer, Path(folder)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
