"""``python -m tests.strategies.zoo``: bytes of activations of every network of the zoo, or of those
that are named, planned with each strategy for a NUCLEO-L4R5ZI whatever its size, proved. In place
is ``herringbone``; of ``joint`` with the input held and streamed. Patches compute some values
again."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache

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
from pipeline.strategies.base import LAYOUTS, Strategy
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from pipeline.strategies.patch import Patch
from pipeline.strategies.replace import Replace
from pipeline.strategies.single_transpose import SingleTranspose
from tests.models.counting import member
from tests.strategies.chains import mnist
from tests.targets.cortex_m import board_named

IN_PLACE: tuple[Strategy, ...] = tuple(
    kind(layout=layout) for kind in (Herringbone, Replace, SingleTranspose) for layout in LAYOUTS
)

OWN = {"integer", "onnx", "tflite", "torch"}
"""Networks that a user brings."""

FOUR_BITS = {"mnist_2kb", "record_mnist", "record_mnist_flash"}
"""Trained with 4 bits: ``mnist`` has the shapes of the first."""

ZOO = {
    path.stem
    for path in (ROOT / "conf" / "model").glob("*.yaml")
    if "_target_" in yaml.safe_load(path.read_text()) and path.stem not in OWN | FOUR_BITS
}


@cache
def network(name: str) -> Graph:
    if name == "mnist":
        return mnist().graph()
    model = member(name)
    graph = Int8(images=1).graph(name, model, state_arrays(model.build()), {})
    return passes.applied(graph, ["constants", "fold_reshape", "fold_pad"])


def pmu_bytes(strategy: Strategy, graph: Graph, streamed: bool) -> float | None:
    """Of a plan that is proved; None without one."""
    board = replace(board_named("nucleo_l4r5zi"), streams_input=streamed)
    try:
        plan = roomy(strategy.plan(graph, board))
    except ThimbleError:
        return None
    report = verify(plan, graph)
    assert not report.recomputed or isinstance(strategy, Patch)
    return cost(plan, graph, board, report).pmu_bytes


COLUMNS: dict[str, tuple[tuple[Strategy, ...], bool]] = {
    "ordinary": ((Ordinary(),), False),
    "partial": ((Partial(),), False),
    "patches": ((Patch(),), False),
    "in place": ((Herringbone(),), False),
    "joint": ((Joint(),), False),
    "streamed": ((Joint(),), True),
}


def main(names: list[str]) -> int:
    print(f"{'network':24}" + "".join(f"{column:>12}" for column in COLUMNS))
    for name in names or sorted({*ZOO, "mnist"}):
        graph, line = network(name), f"{name:24}"
        for strategies, streamed in COLUMNS.values():
            each = [pmu_bytes(strategy, graph, streamed) for strategy in strategies]
            found = [size for size in each if size is not None]
            line += f"{min(found):12,.0f}" if found else f"{'–':>12}"
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
