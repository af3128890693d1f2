"""Other values of keys are planned for and timed, or say why not."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from pipeline.errors import ThimbleError
from pipeline.home import ROOT
from pipeline.runner.results import rows, studied
from pipeline.study import changed, study
from stages._modelled import modelled
from tests.strategies.nets import Net

BOARD = (ROOT / "conf" / "hardware" / "stm32f746g_sd.yaml").read_text()
STRATEGY = (ROOT / "conf" / "strategy" / "swap.yaml").read_text()


def config(*overrides: dict[str, Any]) -> dict[str, Any]:
    hardware = yaml.safe_load(BOARD.replace("${hardware.cpu}", "cortex-m7"))
    strategy = {**yaml.safe_load(STRATEGY), "scheduler": "swapnn", "buffer_bytes": 512}
    return {
        "hardware": {**hardware, "sram_bytes": 4096}, "strategy": strategy,
        "model": {"name": "net"}, "study": list(overrides),
    }  # fmt: skip


def network() -> Net:
    net = Net((12, 12, 4))
    net.dense(net.maximum(net.conv("input", 8, 3)), 10)
    return net


def test_figures_of_a_plan_stand_beside_its_times() -> None:
    (found,) = study(config({"strategy.buffer_bytes": 1024}), network().graph(), modelled)
    assert found["pmu_bytes"] > 0 and found["arena_bytes"] <= 4096 and "makespan_us" in found
    assert "modelled_us" not in found  # a card: the simulation says how long


def test_larger_buffers_mean_fewer_tasks() -> None:
    cfg = config({"strategy.buffer_bytes": 256}, {"strategy.buffer_bytes": 1024})
    small, large = study(cfg, network().graph())
    assert small["set"] == {"strategy.buffer_bytes": 256}
    assert small["io_tasks"] > large["io_tasks"] > 0
    assert small["makespan_us"] >= small["compute_us"] and "traffic" not in small
    assert cfg == config({"strategy.buffer_bytes": 256}, {"strategy.buffer_bytes": 1024})


def test_counts_are_those_of_the_plan() -> None:
    key = {"strategy.buffer_bytes": 256}
    planned, counted = study(config(key, {**key, "only": "counts"}), network().graph())
    assert counted["set"] == key and "makespan_us" not in counted
    assert all(counted[name] == planned[name] for name in ("io_tasks", "compute_tasks"))


def test_the_two_settings_of_time_are_apart() -> None:
    paper, card = study(
        config({"hardware.card.timing": "paper"}, {"hardware.card.timing": "card"}),
        network().graph(),
    )
    assert paper["card_timing"] == "paper" and card["card_timing"] == "card"
    assert card["io_us"] > paper["io_us"] and card["card_write_bytes"] % 512 == 0


def test_what_cannot_be_planned_says_why() -> None:
    (found,) = study(config({"strategy.buffer_bytes": 1 << 20}), network().graph())
    assert "SRAM" in found["error"] and "makespan_us" not in found
    assert found["status"] == "infeasible"


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(ThimbleError, match=r"no key strategy\.speed"):
        changed(config(), {"strategy.speed": 1})


def test_rows_find_the_values_that_they_are_for() -> None:
    paper = [
        {"name": "small", "strategy.buffer_bytes": 256, "metric": "io_tasks", "paper": 7},
        {"name": "main", "strategy.buffer_bytes": 512, "metric": "io_tasks"},
        {"name": "time", "metric": "time_pct", "of": {"wh": [1, 1], "seconds": [2, 3]},
         "strategy.buffer_bytes": 512},
    ]  # fmt: skip
    cfg = config({"strategy.buffer_bytes": 256}) | {"paper": paper}
    merged = {"io_tasks": 3, "study": study(cfg, network().graph())}
    own = rows(paper, {"strategy": "swap", **merged}, cfg)
    assert [(row["name"], row["ours"]) for row in own] == [("main", 3), ("time", 50)]
    (other,) = studied(merged, cfg)
    assert other["name"] == "small" and other["paper"] == 7
    assert other["ours"] == merged["study"][0]["io_tasks"]


def test_rows_of_layers() -> None:
    traffic = [{"layer": "a", "mops": 1.0}, {"layer": "b", "mops": 2.0}]
    result = {"strategy": "swap", "traffic": traffic}
    paper = [{"name": "one", "layer": "b", "metric": "mops", "paper": 2},
             {"name": "net", "layer": "*", "metric": "mops"}]  # fmt: skip
    found = rows(paper, result, config())
    assert [(row["name"], row["ours"]) for row in found] == [("one", 2), ("net a", 1), ("net b", 2)]
