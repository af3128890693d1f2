"""Pages of each kind of plan, small enough to be made in a moment."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import verdict
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.cost import cost
from pipeline.plan.fit import roomy
from pipeline.plan.vocabulary import Plan
from pipeline.report import page
from pipeline.report.images import Predictions, predictions
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from pipeline.strategies.patch import Patch
from tests.plan.fixtures import FIXTURES
from tests.plan.test_cost import BOARD
from tests.strategies import nets
from tests.strategies import test_ordinary as ordinary
from tests.strategies.chains import board
from tests.strategies.nets import narrow
from tests.strategies.patch.test_patch import two_layers
from tests.strategies.test_chains import herringbone, mnist
from tests.timing.test_simulate import rows, slow, swapped

METRICS: dict[str, Any] = {
    "status": "ok", "pmu_bytes": 42.5, "arena_bytes": 43, "sram_limit_bytes": 2048,
    "weight_bytes": 1513, "stack_bytes": 60, "sram_bytes": 1620, "flash_bytes": 9000,
    "flash_limit_bytes": 32256, "accuracy_float": 0.99, "accuracy_int": 0.9876,
    "accuracy_device": 0.98, "images_host": 10_000, "images_device": 100, "mismatches_device": 0,
    "mismatches_host": 0, "cycles": 1000, "latency_us": 29_800.0, "energy_uj": 1790.0,
    "layers": [
        {"layer": "conv <a>", "macs": 250, "cycles": 875, "cycles_per_mac": 3.5},
        {"layer": "rest", "macs": 0, "cycles": 125},
    ],
}  # fmt: skip
UNO = replace(board(), sram_bytes=2048, stack_reserve_bytes=64)
PASSES = [
    {"pass": "imported", "weight_bytes": 219_064, "macs": 7_489_664, "operators": 62},
    {"pass": "fold_pad", "weight_bytes": 219_064, "macs": 7_489_664, "operators": 58},
    {"pass": "dead_channels", "weight_bytes": 33_374, "macs": 1_200_000, "operators": 58},
]
PROVENANCE = {"hardware": "Arduino <Uno>", "plan": "abc"}


def write(
    path: Path, plan: Plan, graph: Graph, hardware: Hardware, ran: bool = False, **report: Any
) -> str:
    """The page of a plan; with ``ran`` that of a run, ``METRICS``, ``PASSES``, predictions."""
    costs = cost(roomy(plan), graph, hardware)
    found = verdict.check(plan, graph, hardware) | report
    known = (METRICS, PROVENANCE, PASSES, guesses()) if ran else ()
    page.write(path, graph, plan, hardware, costs, found, *known)
    return path.read_text()


def guesses() -> Predictions | None:
    """Mostly right, for pictures of noise."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, 400)
    outputs = rng.integers(0, 50, (400, 10))
    outputs[np.arange(400), labels] += 30
    return predictions(outputs, labels, rng.integers(0, 256, (400, 12, 12, 1)).astype(np.uint8))


def made(kind: str) -> tuple[Plan, Graph, Hardware]:
    """A plan of one of ``KINDS``."""
    if kind == "slots":
        return herringbone("slots"), mnist().graph(), UNO
    if kind == "too large":
        return Ordinary().plan(mnist().graph(), UNO), mnist().graph(), UNO
    if kind == "swap":
        graph = rows(8, 3)
        hardware = slow(first_failure_cycles=10.0, read_ma=1.0, write_ma=1.0)
        return swapped(graph, 2), graph, hardware
    if kind == "joint":
        graph = two_layers(16)
        return Joint().plan(graph, ordinary.BOARD), graph, ordinary.BOARD
    if kind == "again":  # rows of tiles, whose borders are computed again
        graph, hardware = narrow(), replace(ordinary.BOARD, streams_input=True)
        return Joint(extra_macs=1.0).plan(graph, hardware), graph, hardware
    if kind == "patch":
        graph = two_layers(16)
        plan = Patch(rows=2, columns=2, until="conv2d1").plan(graph, ordinary.BOARD)
        return plan, graph, ordinary.BOARD
    if kind == "partial":
        graph = nets.fig1_block()
        plan = Partial(channels=1).plan(graph, ordinary.BOARD)
        return plan, graph, ordinary.BOARD
    plan, graph = FIXTURES[kind](np.random.default_rng(0))
    return plan, graph, replace(BOARD, core="generic", streams_input=False)


KINDS = (
    *("slots", "too large", "swap", "joint", "again"),
    *("partial", "patch", "row_ring", "rows_anywhere"),
)
RAN = ("slots",)
"""Kinds whose page is that of a run."""
