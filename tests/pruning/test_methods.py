"""All methods keep to limits, tune what is left, and say in a line what cannot be."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from pipeline import budget, config, verdict
from pipeline.datasets.nothing import Nothing
from pipeline.importers import float_nodes as nodes
from pipeline.models.blocks import Blocks
from pipeline.pruning import stored
from pipeline.pruning.channels import ChannelPruning
from pipeline.pruning.couplings import couplings
from pipeline.pruning.magnitude import Magnitude
from pipeline.pruning.method import Pruned
from pipeline.pruning.none import NoPruning
from pipeline.pruning.pex import Pex
from pipeline.pruning.planner import Planner
from pipeline.pruning.width import Width
from pipeline.quantize.int8 import Int8
from pipeline.strategies.joint import Joint
from pipeline.strategies.swap import Swap
from pipeline.training.environment import Run
from pipeline.training.random_weights import RandomWeights
from tests.programs import refusal
from tests.pruning.networks import DATA, MODEL, PLANNER, weights
from tests.targets.cortex_m import board_named
from tests.tiers import quick

NONE = Nothing().arrays()
METHODS = {"magnitude": Magnitude, "width": Width, "pex": Pex}
PLAN = Planner.of(**{"names" if k == "passes" else k: v for k, v in PLANNER.items()})


def made(name: str, **keys: Any) -> ChannelPruning:
    return METHODS[name](**PLANNER, **{"epochs": 0, "batch": 32, **keys})


def pruned(method: ChannelPruning, data: Any = NONE, model: Any = MODEL) -> Pruned:
    return method.prune(model, weights(), data, Run(1))


def test_it_is_off_by_default_and_changes_nothing() -> None:
    method = config.instantiate(yaml.safe_load(Path("conf/prune/none.yaml").read_text()))
    assert method == NoPruning() and not method.changes
    found = method.prune(MODEL, given := {"a": np.arange(3)}, {}, Run())
    assert found.weights == given and found.tables == {"layers": [], "steps": [], "epochs": []}


PMU, WEIGHTS, MACS = {"pmu_bytes": 3000}, {"weight_bytes": 1100}, {"macs": 70_000}
CASES = [("magnitude", PMU), ("width", WEIGHTS), ("pex", MACS), ("pex", PMU), ("pex", WEIGHTS),
         ("pex", {"latency_us": 86})]  # fmt: skip


@pytest.mark.parametrize(("name", "limit"), quick(0, CASES, ci=2))
def test_limits_are_kept_by_what_is_stored(name: str, limit: dict[str, int]) -> None:
    found = pruned(made(name, **limit))
    small = stored.from_arrays(found.weights)
    (key, most), needs = next(iter(limit.items())), PLAN(small).amounts
    assert 0.5 * most < needs[key] <= most < found.steps[0][key]
    assert needs in found.steps
    graph = Int8(images=4).from_float(small, DATA)
    assert np.isin(
        graph.evaluate(DATA["test_images"].astype(np.int64) - 128), range(-128, 128)
    ).all()
    sizes = {row.layer: row.channels_after for row in found.rows}
    assert sizes == {n.name: len(n.weights) for n in small.nodes if isinstance(n, nodes.Weighted)}


@pytest.mark.ci
def test_pex_leaves_alone_what_is_not_the_bottleneck() -> None:
    """The peak is in the first blocks; the last one's channels cost the others their place."""
    rows = {name: pruned(made(name, pmu_bytes=4000)).rows for name in METHODS}
    left = {name: sum(row.weights_after for row in found) for name, found in rows.items()}
    assert left["pex"] > 1.1 * max(left["magnitude"], left["width"])


@pytest.mark.parametrize("name", quick(0, ["pex", "magnitude", "width"], ci=1))
def test_fine_tuning_learns_and_is_repeatable(name: str) -> None:
    method = made(name, epochs=4, **({"gate_epochs": 2} if name == "pex" else {}), pmu_bytes=4500)
    first = pruned(method, DATA)
    assert [row.epoch for row in first.epochs] == [1, 2, 3, 4]
    gates = [row.phase for row in first.epochs].count("gates")
    assert gates == (2 if name == "pex" else 0)
    assert first.epochs[-1].loss < 0.7 * first.epochs[0].loss
    assert PLAN(stored.from_arrays(first.weights)).amounts["pmu_bytes"] <= 4500
    assert "random_weights" not in first.weights
    if name == "pex":
        again = pruned(method, DATA).weights
        assert all((first.weights[key] == again[key]).all() for key in again)


@pytest.mark.slow
def test_estimates_choose_about_what_plans_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the order of rows; a few plans say whether that holds."""
    strategy, asked, plan = {"_target_": f"{Joint.__module__}.Joint"}, list[object](), Joint.plan
    monkeypatch.setattr(Joint, "plan", lambda *args: asked.append(args) or plan(*args))
    method = Pex(**{**PLANNER, "strategy": strategy}, epochs=0, pmu_bytes=2200)
    found, estimates = pruned(method), len(asked)
    monkeypatch.setattr(Joint, "estimate", lambda *args: None)
    kept = [sum(row.weights_after for row in each.rows) for each in (found, pruned(method))]
    assert found.steps[-1]["pmu_bytes"] <= 2200 and kept[0] >= 0.9 * kept[1]
    assert estimates <= 3 < len(asked) - estimates


@pytest.mark.ci
def test_steps_go_down_to_the_limit() -> None:
    found = pruned(made("pex", epochs=3, gate_epochs=2, pmu_bytes=3000, images=64), DATA)
    sizes = [step["pmu_bytes"] for step in found.steps]
    assert len(sizes) == 3 and sizes[0] > sizes[1] > sizes[2] <= 3000
    told = found.tables["steps"]
    assert [*told[0]] == ["pmu_bytes", "weight_bytes", "macs", "latency_us"]
    assert [step["pmu_bytes"] for step in told] == sizes


def test_without_limits_each_layer_loses_its_share() -> None:
    for method in (Magnitude(ratio=0.5, epochs=0), Width(width=0.5, epochs=0)):
        found = pruned(method)
        assert {row.channels_after / row.channels_before for row in found.rows[:-1]} == {0.5}
        assert "random_weights" in found.weights, "nothing has been learnt"


@pytest.mark.parametrize("name", quick(0, ["width", "pex", "magnitude"], ci=1))
def test_a_limit_that_cannot_be_kept_is_an_infeasible_result(name: str) -> None:
    """Without an hour of tuning before: how far it got, and where the peak is."""
    found = pruned(made(name, pmu_bytes=150, epochs=3, images=64), DATA)
    assert not any(row.phase == "tune" for row in found.epochs)
    needs = PLAN(stored.from_arrays(found.weights))
    report = {**needs.amounts, "modelled_us": 1.0, "peak_at": needs.at, "status": "ok"}
    said = budget.unmet({"pmu_bytes": 150}, report, found.steps)
    assert said["status"] == "infeasible" and said["resource"] == "prune.pmu_bytes"
    assert said["needed_bytes"] == needs.amounts["pmu_bytes"] > said["available_bytes"] == 150
    assert needs.at in said["where"] and "as far as it goes" in said["where"]
    assert not budget.unmet({"pmu_bytes": 10_000}, report, found.steps)
    others = budget.unmet({"weight_bytes": 1}, report, found.steps)
    assert "a channel of each group" in others["where"]


@pytest.mark.ci
def test_a_limit_that_quantization_exceeds_is_told_apart() -> None:
    """Its exponents decide which kernels a layer gets, and with that what memory it takes."""
    steps = pruned(made("pex", pmu_bytes=3000, epochs=0)).tables["steps"]
    report = {**steps[-1], "pmu_bytes": 3001, "modelled_us": 1.0, "peak_at": "fc"}
    said = budget.unmet({"pmu_bytes": 3000}, report, steps)
    assert said["where"] == "kept to it until it was quantized; the peak is at fc"
    assert said["advice"] == "try prune.pmu_bytes=3001, another seed, strategy or model"


@pytest.mark.slow
def test_the_latency_of_a_plan_with_a_card_is_the_simulated_one() -> None:
    """As the schedule's report and its limits have it."""
    plan = Planner(Swap(), board_named("stm32f746g_sd"), ())
    network = stored.from_arrays(pruned(Width(width=1.0, epochs=0)).weights)
    graph = Int8(images=2, observer="minmax", threads=1).from_float(network)
    needs = plan(network)
    report = verdict.check(Swap().plan(graph, plan.hardware), graph, plan.hardware)
    assert needs.amounts["latency_us"] == pytest.approx(report["makespan_us"])
    limit = {"latency_us": 0.9 * needs.amounts["latency_us"]}
    said = budget.unmet(limit, report, [needs.amounts])
    assert said["needed_bytes"] == report["makespan_us"] and said["unit"] == "us"
    assert not budget.unmet({"latency_us": 1.1 * report["makespan_us"]}, report, [needs.amounts])


FIXED = Blocks((12, 12, 1), 4, ({"kind": "avgpool", "kernel": 3},))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: made("pex", pmu_bytes=-1), "prune.pmu_bytes=-1: give the B"),
        (lambda: made("pex", latency_us=float("nan")), "prune.latency_us=nan: give the us"),
        (lambda: made("magnitude", macs=-5), "prune.macs=-5: give the MACs"),
        (lambda: made("pex"), "prune=pex needs a limit"),
        (lambda: made("width"), "either prune.width, such as 0.5, or limits"),
        (lambda: made("width", width=0.5, macs=9), "or limits such as prune.pmu_bytes, not both"),
        (lambda: made("width", width=1.5), "prune.width=1.5 must be"),
        (lambda: made("pex", macs=9, penalty=-1), "prune.penalty=-1"),
        (lambda: made("pex", macs=9, epochs=-1), "prune.epochs=-1"),
        (lambda: pruned(made("pex", pmu_bytes=143)), "the input alone takes 144 B"),
        (lambda: pruned(made("pex", pmu_bytes=3000, epochs=2)), "and the data set has none"),
        (lambda: made("width", width=0.5).prune(
            FIXED, RandomWeights().train(FIXED, DATA, Run(1)).weights, NONE, Run(1)),
         "has no channels"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line(make: Any, said: str) -> None:
    assert said in refusal(make)


def test_a_stored_network_is_the_same() -> None:
    network = stored.from_arrays(pruned(Width(width=1.0, epochs=0)).weights)
    again = stored.from_arrays(stored.to_arrays(network))
    assert [type(node) for node in again.nodes] == [type(node) for node in network.nodes]
    assert again.shapes == network.shapes and couplings(again).groups == couplings(network).groups
    arrays = stored.to_arrays(again)
    assert all((arrays[key] == value).all() for key, value in stored.to_arrays(network).items())


def test_the_planner_is_asked_for_nothing_without_limits() -> None:
    """Another strategy, board, or part of one that no planner reads then prunes nothing anew."""
    prune = {"name": "width", "pmu_bytes": 0, "hardware": {"baud": 9600, "core": "avr"}}
    asked = budget.asked({**prune, "strategy": {}, "passes": []})
    assert asked == {"name": "width", "pmu_bytes": 0}
    kept = budget.asked({**prune, "pmu_bytes": 5, "strategy": {"name": "partial"}})
    assert kept["hardware"] == {"core": "avr"} and kept["strategy"] == {"name": "partial"}
