"""What other strategies would need: each as if it had been chosen, and no slow one."""

from __future__ import annotations

from dataclasses import replace

from pipeline import verdict
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.others import at_a_glance, others
from pipeline.strategies.partial import Partial
from tests.strategies import nets
from tests.strategies.chains import board
from tests.strategies.test_mnist import mnist
from tests.strategies.test_ordinary import BOARD

UNO = replace(board(), sram_bytes=2048, stack_reserve_bytes=64)


def test_each_needs_what_its_own_run_would_say() -> None:
    graph = mnist().graph()
    found = {row["strategy"]: row for row in others(Herringbone().plan(graph, UNO), graph, UNO)}
    assert set(found) == {"joint", "ordinary", "partial", "patch", "replace", "single_transpose"}
    assert "streams in" in found["patch"]["why"]
    assert found["joint"]["pmu_bytes"] < found["replace"]["pmu_bytes"]
    for strategy in (Ordinary(), Partial()):
        said = verdict.check(strategy.plan(graph, UNO), graph, UNO)
        (sram,) = (each for each in said["memories"] if each["name"] == "sram")
        assert found[strategy.name] == {
            "strategy": strategy.name, "pmu_bytes": said["pmu_bytes"],
            "needed_bytes": sram["needed_bytes"], "fits": said["status"] == "ok",
        }  # fmt: skip
    assert not found["ordinary"]["fits"] and found["replace"]["fits"]


def test_a_strategy_without_a_plan_says_why() -> None:
    graph = nets.autoencoder()
    found = {row["strategy"]: row for row in others(Ordinary().plan(graph, BOARD), graph, BOARD)}
    assert "cannot run in 4x4 patches" in found["patch"]["why"] and "ordinary" not in found
    assert found["joint"]["pmu_bytes"] < 768


def test_a_large_network_is_planned_by_the_quick_ones_only() -> None:
    assert {each.name for each in at_a_glance(10**12)} == {"ordinary", "partial"}
    assert "herringbone" in {each.name for each in at_a_glance(94_928)}
    assert "joint" in {each.name for each in at_a_glance(12_501_632)}
    assert not {"auto", "swap"} & {each.name for each in at_a_glance(1)}
