"""Experiments and sweeps compose; the published peaks come out; a missing tool is one line."""

from __future__ import annotations

import pytest

from pipeline.home import ROOT
from tests.stages.conftest import Project

FILES = [
    f"{group}={path.stem}"
    for group in ("experiment", "sweep")
    for path in sorted((ROOT / "conf" / group).glob("*.yaml"))
]


def test_the_headline(small: Project) -> None:
    """On a stand-in: the bytes do not depend on the weights."""
    result = small.run("experiment=gural_mnist", "target.images=2")
    ours = {row["name"]: row["ours"] for row in result["rows"]}
    assert ours["activations"] == 430.5 and ours["weights"] == 1512.5
    assert ours["program"] == result["flash_bytes"]
    assert ours["computing time"] == result["compute_us"]  # as the paper's: not what is left to do


@pytest.mark.slow
def test_the_headline_with_parameters_sent_over_the_line(small: Project) -> None:
    """The same bytes and answers; a smaller program, because it does not hold the parameters."""
    held = small.run("experiment=gural_mnist", "target.images=2")
    sent = small.run("experiment=gural_mnist_stream", "target.images=2")
    for metric in ("pmu_bytes", "weight_bytes", "accuracy_int", "mismatches_device", "sram_bytes"):
        assert sent[metric] == held[metric]
    assert sent["mismatches_host"] == sent["mismatches_device"] == 0
    assert 1000 < held["flash_bytes"] - sent["flash_bytes"] < 1513
    assert sum(layer["cycles"] for layer in sent["layers"]) == sent["cycles"]
    assert [row["name"] for row in sent["rows"]] == [row["name"] for row in held["rows"]]


@pytest.mark.slow
def test_weights_that_neither_memory_of_an_uno_holds(small: Project) -> None:
    """On a stand-in, with random weights."""
    given = ("experiment=mnist_uno_sd", "train=random", "quantize=int8", "target.images=1")
    result = small.run(*given)
    assert result["weight_bytes"] > 30 * 2048 > result["flash_limit_bytes"]
    assert result["sram_bytes"] <= result["sram_limit_bytes"] == 2048
    assert result["mismatches_device"] == result["mismatches_host"] == 0
    assert result["compute_us"] + result["io_us"] == pytest.approx(result["cycles"] / 16)
    assert 1e6 < result["latency_us"] < 2e6


@pytest.mark.slow
def test_the_papers_figure_1(small: Project) -> None:
    result = small.run("experiment=gural_figure1", "target.images=2")
    assert len(result["jobs"]) == 8 and {job["status"] for job in result["jobs"]} == {"ok"}
    rows = {(row["name"], row["metric"]): row for row in result["rows"]}
    for name, paper in {
        "naive": 760, "replace": 467.5, "single_transpose": 437.5, "herringbone": 434.5
    }.items():  # fmt: skip
        row = rows[f"{name}, contiguous", "pmu_bytes"]
        assert row["ours"] == row["paper"] == paper
        assert rows[f"{name}, slots", "pmu_bytes"]["ours"] <= paper
    times = {name: row["ours"] for (name, metric), row in rows.items() if metric == "latency_us"}
    assert all(ours < 90_000 for ours in times.values()) and len(times) == 8
    assert times["herringbone, slots"] < times["herringbone, contiguous"]
    assert rows["replace, slots", "latency_us"]["paper"] is None
