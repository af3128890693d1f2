"""``python -m tests.targets.estimates [int4] [NETWORK …]``: flash, SRAM and time as planned by
``strategy=auto``, divided by what is then built and simulated: of the zoo's networks, or of those
that are named, with random weights, on the boards that have room. Ends with 1 where one is off by
more than 10 %."""

import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import yaml

from pipeline import passes
from pipeline.errors import ThimbleError
from pipeline.frames import fed
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.home import ROOT
from pipeline.kernels import modelled, zero_shares
from pipeline.measure import timing
from pipeline.plan.fit import needs
from pipeline.quantize.int4 import Int4
from pipeline.quantize.int8 import Int8
from pipeline.quantize.samples import FRAMES, test_frames
from pipeline.strategies.auto import Auto
from pipeline.targets import device
from pipeline.targets.planned import planned
from pipeline.training.environment import Run
from pipeline.training.random_weights import RandomWeights
from tests.models.counting import member
from tests.strategies.zoo import FOUR_BITS, ZOO
from tests.targets.cortex_m import board_named, built

BOARDS = "arduino", "pico", "nucleo_f302r8", "nucleo_l4r5zi", "nucleo_g0b1re"
PAIRS = {
    "planned_flash_bytes": "flash_bytes",
    "planned_sram_bytes": "sram_bytes",
    "modelled_us": "compute_us",
}
DATA, TARGET = {"test_images": np.zeros(0)}, {"name": "simulate", "images": 1}
MOST = 0.1


@cache
def network(name: str, quantizer: Int4 | Int8) -> Graph:
    model = member(name)
    weights = RandomWeights().train(model, {}, Run.from_environment(1, 1)).weights
    default = yaml.safe_load((ROOT / "params.yaml").read_text())
    return passes.applied(quantizer.graph(name, model, weights, {}), default["passes"])


def ratios(graph: Graph, hardware: Hardware, folder: Path) -> list[float]:
    """Raises ThimbleError where no plan, or what is built of it, fits."""
    plan = Auto().plan(graph, hardware)
    short = any(need > hardware.bytes_of(name) for name, need in needs(plan, hardware).items())
    size = {} if short else vars(built(folder, graph, hardware, plan))
    if short or size["status"] != "ok":
        raise ThimbleError("does not fit")
    zeros = zero_shares(graph, test_frames(graph, DATA, {"images": FRAMES}).astype(np.int64))
    said = {**planned(plan, graph, hardware), **modelled(plan, graph, hardware, zeros)}
    images = np.ascontiguousarray(fed(graph, test_frames(graph, DATA, TARGET))).view(np.uint8)
    ran, _ = device.measure(TARGET, folder / "build", size, hardware, images)
    found = {**size, **ran, **timing(ran, hardware)}
    return [float(said[before]) / float(found[after]) for before, after in PAIRS.items()]


def main(words: list[str]) -> int:
    """Print a row a pair as it is known."""
    four, worst = words[:1] == ["int4"], 0.0
    print(f"{'network':20} {'board':14}   flash    SRAM    time")
    for name in words[four:] or sorted(ZOO | FOUR_BITS):
        for board in BOARDS:
            try:
                graph = network(name, Int4() if four else Int8())
                with tempfile.TemporaryDirectory() as folder:
                    found = ratios(graph, board_named(board), Path(folder))
            except ThimbleError as error:
                print(f"{name:20} {board:14} {error}", flush=True)
                continue
            worst = max(worst, *(abs(ratio - 1) for ratio in found))
            cells = "".join(f"{ratio:8.3f}" for ratio in found)
            print(f"{name:20} {board:14}{cells}", flush=True)
    print(f"at most {worst:.1%} off")
    return int(worst > MOST)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
