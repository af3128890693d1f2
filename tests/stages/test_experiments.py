"""Every file in conf/experiment and conf/sweep composes and runs, on random weights, made-up images
and two of them on the device; a new file is found by itself. Published figures come out."""

import functools
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra.types import RunMode
from omegaconf import OmegaConf

from pipeline.home import ROOT
from pipeline.runner import schema
from pipeline.runner.job import resolved
from pipeline.runner.workspace import params_text
from tests.stages.conftest import BARE, Project
from tests.tiers import quick

FILES = [
    f"{group}={path.stem}"
    for group in ("experiment", "sweep")
    for path in sorted((ROOT / "conf" / group).glob("*.yaml"))
]
MADE_UP = {
    "mnist": ("data=synthetic",),
    "fashion_mnist": ("data=synthetic",),
    "cifar10": ("data=synthetic", "data.shape=[32,32,3]"),
    "spoken_keywords": ("data=tones",),
}
"""Stand-ins for the images of a data set that has to be downloaded."""


def composed(*overrides: str) -> Any:
    return schema.composed(*overrides, hydra=True)


@functools.cache
def text(override: str) -> str:
    """Join the file and those of its group that it starts from: composing all takes ten seconds."""
    group, name = override.split("=")
    content = (ROOT / "conf" / group / f"{name}.yaml").read_text()
    starts = [str(each) for each in yaml.safe_load(content).get("defaults", ())]
    siblings = [each for each in starts if each.isidentifier() and each != "_self_"]
    return "\n".join([content, *(text(f"{group}={each}") for each in siblings)])


SMALL = [file for file in FILES if "model" not in text(file)]
"""Planning a larger network than the default one takes too long for the default tests."""
SWEEPS = [file for file in FILES if "MULTIRUN" in text(file)]
QUICK = [file for file in SMALL if file.startswith("sweep=")]
"""An experiment's sweep is dozens of jobs; the others of SMALL are below."""
LONG = "frontier|pex_keywords|pex_pareto|fig8|architectures|in_|swapped|durability|appendix_e|repea"
BY_HAND = [file for file in FILES if re.search(LONG, file)]
"""More than ten minutes: commands of their own, in CONTRIBUTING.md."""
BELOW = [f"experiment={name}" for name in ("pex_run", "pex_overhead", "gural_figure1")]
"""Tests of their own run them."""
TO_THE_END = [file for file in SWEEPS if file in SMALL and "until:" not in text(file)]


OURS = {
    "pex_figure6": [351_232, 282_240, 225_792, 225_792],
    "pex_figure2": [1_505_280, 320_960, 376_320],
}
"""Numbers of docs/papers.md, for experiments whose papers have none."""
PUBLISHED = ("memory_optimal", "pex_table3", "pex_table4", "pex_appendix_d")
"""Experiments whose published figures come out, to the digits that are printed: three."""
NOT_THEIRS = {"MobileNetV2 172, MACs in patches (+12.6 %)": 215_003_312}
"""The paper does not say how it divides 22 rows into four (docs/partial.md)."""


def first_job(override: str) -> Any:
    """The file's config with the groups of its first job, whose model may need no data."""
    sweeper = composed(override).hydra.sweeper
    lines = [word.split("=", 1) for word in (sweeper.get("jobs") or [""])[0].split()]
    given = dict(lines) | {key: str(value) for key, value in (sweeper.get("params") or {}).items()}
    words = [
        f"{key}={given[key].split(',')[0]}" for key in ("model", "data", "train") if key in given
    ]
    return composed(override, *words)


def run(project: Project, override: str, *args: str) -> Any:
    """The result of the file on its stand-in; an experiment that does not fit exits with 3."""
    choices = first_job(override).hydra.runtime.choices
    words = [override, *MADE_UP.get(choices["data"], ()), "target.images=2", *args]
    if choices["train"] != "none":
        words.append("train=random")
    return project.run(*words, given=BARE, codes=(0, 3))


def check(result: Any, override: str) -> None:
    jobs = result.get("jobs", [result])
    assert {job["status"] for job in jobs} <= {"ok", "infeasible"}
    assert all(job["pmu_bytes"] > 0 for job in jobs)
    assert bool(composed(override).paper) == ("rows" in result)
    assert all(row["ours"] is not None for job in jobs for row in job.get("rows", ())
               if job["status"] == "ok" and "measure" in job["stages"])  # fmt: skip
    name, rows = override.partition("=")[2], result.get("rows", [])
    if name in OURS:
        assert [row["ours"] for row in rows] == OURS[name]
    for row in rows if name in PUBLISHED else ():
        expected = NOT_THEIRS.get(row["name"], row["paper"])
        assert abs(row["ours"] - expected) <= 0.004 * expected, row["name"]
    if name.startswith("pex_table"):
        assert {job["status"] for job in jobs} == {"ok"} and len(rows) >= len(jobs)
        assert {row["metric"] for row in rows} <= {"pmu_bytes", "macs_executed"}


@pytest.mark.parametrize("override", quick(8, FILES))
def test_every_file_composes(override: str) -> None:
    config = composed(override)
    keys = [str(key) for key in config if key != "hydra"]
    assert "hardware:" in params_text(resolved(OmegaConf.masked_copy(config, keys)))
    jobs = " ".join(config.hydra.sweeper.get("jobs") or ())
    small = config.hydra.runtime.choices["model"] == "mnist_2kb" and "model=" not in jobs
    assert small or override not in SMALL
    assert (override in SWEEPS) == (config.hydra.mode == RunMode.MULTIRUN)
    assert config.until.name == "measure" or override not in TO_THE_END


@pytest.mark.parametrize(
    "override",
    [
        pytest.param(file, marks=pytest.mark.ci if file in QUICK else pytest.mark.slow)
        for file in FILES
        if file not in (*BY_HAND, *BELOW)
    ],
)
def test_it_runs_on_a_stand_in(small: Project, override: str) -> None:
    """Sweeps up to the plan: all their jobs to the end take minutes."""
    check(run(small, override, *(["until=schedule"] if override in SWEEPS else [])), override)


@pytest.mark.slow
@pytest.mark.parametrize("override", TO_THE_END)
def test_a_sweep_runs_to_its_end_on_a_stand_in(small: Project, override: str) -> None:
    result = run(small, override, "hydra/launcher=local")
    check(result, override)
    assert len(result["jobs"]) > 1


@pytest.mark.ci
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
    times = {name: row["ours"] for (name, metric), row in rows.items() if metric == "compute_us"}
    assert all(ours < 90_000 for ours in times.values()) and len(times) == 8
    assert times["herringbone, slots"] < times["herringbone, contiguous"]
    assert rows["replace, slots", "compute_us"]["paper"] is None


@pytest.mark.slow
def test_a_network_pruned_for_its_plan(small: Project) -> None:
    """Docs/pruning.md's figures; other lines prune nothing anew; an unmet limit is a result."""
    words = (
        "model=mobilenet_v2_cifar10", "data=none", "train=random", "quantize=int8", "prune=pex",
        "prune.epochs=0", "hardware=nucleo_f446re", "strategy=partial",
        "strategy.accumulator_bits=8", "until=schedule",
    )  # fmt: skip
    result = small.run(*words, "prune.pmu_bytes=6144", given=BARE)
    assert result["status"] == "ok" and result["pmu_bytes"] == 6_144
    least = (result["weight_bytes"], result["macs"])  # by how a processor's floats sum up
    assert least in {(185_856, 6_130_048), (182_612, 5_970_304)}
    folder = Path(result["run_dir"])
    steps = json.loads((folder / "pruning.json").read_text())["steps"]
    assert [step["pmu_bytes"] for step in steps] == [10_752, 6_144]
    again = small.run(*words, "prune.pmu_bytes=6144", "hardware.baud=9600", given=BARE)
    assert again["pmu_bytes"] == 6_144 and again["stages"]["prune"]["cached"]
    refused = small.run(*words, "prune.pmu_bytes=3100", codes=(3,), given=BARE)
    assert refused["status"] == "infeasible" and refused["resource"] == "prune.pmu_bytes"
    assert refused["needed_bytes"] == 4_096 and "the peak is at" in refused["where"]


@pytest.mark.slow
def test_inferences_on_parts(small: Project) -> None:
    """Run what fits to its end, with the interpreter's outputs; the rest does not fit."""
    result = small.run("experiment=pex_run", given=BARE)
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
def test_instructions_over_ordinary(small: Project) -> None:
    """At most 1.15 at a point with half the ordinary plan's peak; of RES-15 at its least."""
    result = small.run("experiment=pex_overhead", given=BARE)
    assert {job["status"] for job in result["jobs"]} == {"ok"}
    best: dict[str, float] = {}
    for job in result["jobs"]:
        name = job["model"] + "".join(w for w in job["overrides"] if "input_shape" in w)
        least = job["model"] == "res15" and job["pmu_bytes"] == 44_590
        if job["strategy"] == "partial" and (least or job["pmu_over_ordinary"] <= 0.5):
            best[name] = min(best.get(name, 9.0), job["instructions_over_ordinary"])
    assert len(best) == 4 and max(best.values()) <= 1.15
    assert all(row["ours"] is not None for row in result["rows"])
