"""Runs are called by what was chosen, jobs by what tells them apart, sweeps by what was swept."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.runner import titles

CONFIG: dict[str, Any] = {
    "model": {"name": "mnist_2kb"},
    "hardware": {"name": "arduino"},
    "strategy": {"name": "herringbone"},
}
RUN = "mnist_2kb · arduino · herringbone"


def test_a_run_is_called_model_board_strategy() -> None:
    assert titles.of_run(CONFIG) == RUN


@pytest.mark.parametrize(
    ("jobs", "called"),
    [
        ([["strategy=naive"], ["strategy=herringbone"]], RUN),
        ([["seed=1", "train=quick"], ["seed=2", "train=quick"]], f"{RUN} · seed=2"),
        ([["model=tflite", "model.path=a"], ["model=tflite", "model.path=b"]], RUN),
        ([["model.width=1"], ["model.width=2"]], f"{RUN} · model.width=2"),
        ([["seed=1"], ["seed=1"]], RUN),
    ],
)
def test_a_job_says_what_its_name_does_not(jobs: list[list[str]], called: str) -> None:
    assert titles.of_job(CONFIG, jobs, 1) == called


@pytest.mark.parametrize(
    ("choices", "typed", "jobs", "called"),
    [
        (
            {},
            ["strategy=naive,replace", "output=json"],
            [["strategy=naive"], ["strategy=replace"]],
            "strategy=naive,replace · 2 jobs",
        ),
        (
            {"experiment": "gural_figure1", "sweep": None},
            ["experiment=gural_figure1"],
            [["strategy=naive"], ["strategy=replace"], ["strategy=herringbone"]],
            "gural_figure1 · 3 jobs",
        ),
        (
            {"sweep": "strategies"},
            ["sweep=strategies", "seed=range(1,3)"],
            [["strategy=naive", "seed=1"], ["strategy=naive", "seed=2"]],
            "strategies · seed=range(1,3) · 2 jobs",
        ),
        ({}, ["seed=1"], [["seed=1"]], "sweep · 1 job"),
    ],
)
def test_a_sweep_is_called_by_what_was_swept(
    choices: dict[str, Any], typed: list[str], jobs: list[list[str]], called: str
) -> None:
    assert titles.of_sweep(choices, typed, jobs) == called


def test_a_long_sweep_has_a_name_that_fits_a_line() -> None:
    jobs = [[f"seed={number}"] for number in range(300)]
    typed = "seed=" + ",".join(map(str, range(300)))
    called = titles.of_sweep({}, [typed], jobs)
    assert called.endswith("… · 300 jobs") and len(called) <= titles.LONGEST + 15
