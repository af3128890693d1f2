"""``python -m tests.strategies.zoo``: bytes of activations of every network of the zoo, or of those
that are named, planned with each strategy for a NUCLEO-L4R5ZI whatever its size, proved. In place
is ``herringbone``; of ``joint`` with the input held and streamed. Patches compute some values
again. After the word ``seconds``: processor time in which each strategy but ``joint``, ``auto`` and
``swap`` plans them, proofs not counted; exits 1 where one takes more than a second."""

import contextlib
import sys
import time
from dataclasses import replace
from functools import cache

import torch
import yaml

from pipeline import passes
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.home import ROOT
from pipeline.models.network import state_arrays
from pipeline.plan.cost import cost
from pipeline.plan.fit import roomy
from pipeline.plan.verify import verify
from pipeline.quantize.int8 import Int8
from pipeline.strategies.base import Strategy
from pipeline.strategies.in_place import Herringbone, Replace, SingleTranspose
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from pipeline.strategies.patch import Patch
from tests.models.counting import member
from tests.strategies.chains import mnist
from tests.targets.cortex_m import board_named

OWN = {"integer", "onnx", "tflite", "torch"}
"""Networks that a user brings."""

FOUR_BITS = {"mnist_2kb", "record_mnist", "record_mnist_flash"}
"""Trained with 4 bits: ``mnist`` has the shapes of the first."""

TRAINED = {"vit_mnist", "norm_kws"}
"""Examples of operators, in experiments of their own."""

ZOO = {
    path.stem
    for path in (ROOT / "conf" / "model").glob("*.yaml")
    if "_target_" in yaml.safe_load(path.read_text()) and path.stem not in OWN | FOUR_BITS | TRAINED
}


@cache
def network(name: str) -> Graph:
    if name == "mnist":
        return mnist().graph()
    torch.manual_seed(0)
    model = member(name)
    graph = Int8(images=1).graph(name, model, state_arrays(model.build()), {})
    return passes.applied(graph, ["constants", "fold_reshape", "fold_pad"])


def pmu_bytes(strategy: Strategy, graph: Graph, streamed: bool) -> float | None:
    """Return the peak of a plan that is proved; None without one."""
    board = replace(board_named("nucleo_l4r5zi"), streams_input=streamed)
    try:
        plan = roomy(strategy.plan(graph, board))
    except ThimbleError:
        return None
    report = verify(plan, graph)
    assert not report.recomputed or isinstance(strategy, Patch)
    return cost(plan, graph, board, report).pmu_bytes


COLUMNS: dict[str, tuple[Strategy, bool]] = {
    "ordinary": (Ordinary(), False),
    "partial": (Partial(), False),
    "patches": (Patch(), False),
    "in place": (Herringbone(), False),
    "joint": (Joint(), False),
    "streamed": (Joint(), True),
}
TIMED = (Ordinary(), Partial(), Patch(), Herringbone(), Replace(), SingleTranspose())
MOST_SECONDS = 1.0


def seconds(strategy: Strategy, graph: Graph) -> float:
    """Until there is a plan, or a line that says why not."""
    board, begin = board_named("nucleo_l4r5zi"), time.process_time()
    with contextlib.suppress(ThimbleError):
        strategy.plan(graph, board)
    return time.process_time() - begin


def main(words: list[str]) -> int:
    timed = words[:1] == ["seconds"]
    names, slow = words[timed:] or sorted({*ZOO, "mnist"}), False
    columns = [each.name for each in TIMED] if timed else list(COLUMNS)
    print(f"{'network':24}" + "".join(f"{column:>18}" for column in columns))
    for name in names:
        graph = network(name)
        if timed:
            took = [seconds(strategy, graph) for strategy in TIMED]
            slow |= max(took) > MOST_SECONDS
            cells = [f"{each:.2f}" for each in took]
        else:
            found = [
                pmu_bytes(strategy, graph, streamed) for strategy, streamed in COLUMNS.values()
            ]
            cells = ["–" if size is None else f"{size:,.0f}" for size in found]
        print(f"{name:24}" + "".join(f"{cell:>18}" for cell in cells), flush=True)
    return int(slow)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
