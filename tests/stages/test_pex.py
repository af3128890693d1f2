"""Pex's tables from one command each: every published figure, and what is not published."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.home import ROOT
from tests.runner import parent


def run(folder: Path, *words: str, code: int = 0) -> dict[str, Any]:
    """``run.py`` with a cache of its own."""
    command = [sys.executable, ROOT / "run.py", *words, "tracking=none", "output=json"]
    done = parent.run(command, cwd=folder, env={**os.environ, "THIMBLE_HOME": f"{folder}/home"})
    assert done.returncode == code, done.stderr[-2000:]
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


@pytest.mark.slow
def test_a_keyword_network_along_channels(tmp_path: Path) -> None:
    """Rounded accumulators are calibrated on the way; the layers that have them are counted."""
    words = ("model=ds_cnn_s", "hardware=host", "quantize.images=2", "until=schedule")
    partial = ("strategy=partial", "strategy.accumulator_bits=8", "strategy.search=pex")
    result = run(tmp_path, *words, *partial)
    assert result["status"] == "ok" and result["pmu_bytes"] == 16_000
    assert result["accumulate_layers"] == 1 and result["macs"] == result["macs_executed"]


NOT_THEIRS = {"MobileNetV2 172, MACs in patches (+12.6 %)": 215_003_312}
"""The paper does not say how it divides 22 rows into four (docs/partial.md)."""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pex_table3", "pex_table4", "pex_appendix_d"])
def test_every_published_figure(tmp_path: Path, name: str) -> None:
    """To the digits that are printed: three."""
    result = run(tmp_path, f"experiment={name}")
    assert result["status"] == "ok" and {job["status"] for job in result["jobs"]} == {"ok"}
    peaks = [row for row in result["rows"] if row["metric"] == "pmu_bytes"]
    others = [row for row in result["rows"] if row["metric"] == "macs_executed"]
    assert len(peaks) == len(result["jobs"])
    assert len(others) == (len(peaks) if name == "pex_table3" else 0)
    for row in (*peaks, *others):
        expected = NOT_THEIRS.get(row["name"], row["paper"])
        assert abs(row["ours"] - expected) <= 0.004 * expected, row["name"]
    assert bool(result.get("unpublished")) == (name != "pex_table4")


@pytest.mark.slow
def test_a_network_pruned_for_its_plan(tmp_path: Path) -> None:
    """Docs/pruning.md's figures; another line to the board prunes nothing anew; a limit that cannot
    be met is a result."""
    words = (
        "model=mobilenet_v2_cifar10", "data=none", "train=random", "quantize=int8", "prune=pex",
        "prune.epochs=0", "hardware=nucleo_f446re", "strategy=partial",
        "strategy.accumulator_bits=8", "until=schedule",
    )  # fmt: skip
    result = run(tmp_path, *words, "prune.pmu_bytes=6144")
    assert result["status"] == "ok" and result["pmu_bytes"] == 6_144
    assert (result["weight_bytes"], result["macs"]) == (185_856, 6_130_048)
    folder = Path(result["run_dir"])
    steps = json.loads((folder / "pruning.json").read_text())["steps"]
    assert [step["pmu_bytes"] for step in steps] == [10_752, 6_144]
    again = run(tmp_path, *words, "prune.pmu_bytes=6144", "hardware.baud=9600")
    cached = [each["stages"]["prune"]["cached"] for each in (result, again)]
    assert again["pmu_bytes"] == 6_144 and cached == [False, True]
    refused = run(tmp_path, *words, "prune.pmu_bytes=3100", code=3)
    assert refused["status"] == "infeasible" and refused["resource"] == "prune.pmu_bytes"
    assert refused["needed_bytes"] == 4_096 and "the peak is at" in refused["where"]


@pytest.mark.slow
def test_the_network_of_figure_6(tmp_path: Path) -> None:
    """It has no numbers; these are docs/papers.md's."""
    result = run(tmp_path, "experiment=pex_figure6")
    assert [row["ours"] for row in result["rows"]] == [351_232, 282_240, 225_792, 225_792]
    assert result["unpublished"]


@pytest.mark.slow
def test_inferences_on_parts(tmp_path: Path) -> None:
    """What fits ran to its end and gave the interpreter's outputs; the rest does not fit."""
    result = run(tmp_path, "experiment=pex_run")
    assert result["status"] == "ok" and len(result["rows"]) == len(result["jobs"]) == 8
    assert [job["status"] for job in result["jobs"]] == [
        "infeasible", "ok", "infeasible", "infeasible", "ok", "ok", "ok", "ok"
    ]  # fmt: skip
    for job in result["jobs"]:
        if job["status"] == "ok":
            assert job["mismatches_device"] == job["mismatches_host"] == 0
            assert job["images_device"] == 1 and job["macs_executed"] == job["macs"]
            assert job["arena_bytes"] + job["stack_bytes"] <= job["sram_bytes"]
            assert job["sram_bytes"] <= job["arena_bytes"] + job["stack_bytes"] + 64
            assert job["sram_bytes"] <= job["sram_limit_bytes"]
        else:
            assert job["needed_bytes"] > job["available_bytes"]
    for row in result["rows"]:
        assert row["paper"] is None or abs(row["ours"] - row["paper"]) <= 0.004 * row["paper"]


@pytest.mark.slow
def test_instructions_over_ordinary(tmp_path: Path) -> None:
    """At most 1.15 at a point with half the ordinary plan's peak; of RES-15 at its least."""
    result = run(tmp_path, "experiment=pex_overhead")
    assert {job["status"] for job in result["jobs"]} == {"ok"}
    best: dict[str, float] = {}
    for job in result["jobs"]:
        name = job["model"] + "".join(w for w in job["overrides"] if "input_shape" in w)
        least = job["model"] == "res15" and job["pmu_bytes"] == 44_590
        if job["strategy"] == "partial" and (least or job["pmu_over_ordinary"] <= 0.5):
            best[name] = min(best.get(name, 9.0), job["instructions_over_ordinary"])
    assert len(best) == 4 and max(best.values()) <= 1.15
    assert all(row["ours"] is not None for row in result["rows"])


@pytest.mark.slow
def test_the_memory_of_each_layer(tmp_path: Path) -> None:
    """Figure 2."""
    result = run(tmp_path, "experiment=pex_figure2")
    assert [row["ours"] for row in result["rows"]] == [1_505_280, 320_960, 376_320]
    assert (Path(result["run_dir"]) / "profile.png").stat().st_size > 20_000
