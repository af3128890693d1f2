"""A sweep's jobs against its ordinary ones."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.runner.sweep import compared


def job(strategy: str, instructions: int | None = None, *words: str, **more: Any) -> dict[str, Any]:
    found = {"strategy": strategy, "overrides": [f"strategy={strategy}", *words], "model": "net"}
    return found | ({"instructions": instructions} if instructions else {}) | more


def test_each_network_has_its_own_ordinary_job() -> None:
    small, large = ("model.input_shape=[1]",), ("model.input_shape=[2]",)
    row = {"name": "a", "metric": "instructions_over_ordinary", "paper": None, "ours": None}
    jobs = compared(
        [
            job("ordinary", 100, *small, pmu_bytes=10),
            job("partial", 110, *small, pmu_bytes=4, rows=[row, row | {"metric": "x"}]),
            job("ordinary", 1000, *large),
            job("partial", 900, *large),
        ]
    )
    assert jobs[1]["instructions_over_ordinary"] == pytest.approx(1.1)
    assert jobs[1]["pmu_over_ordinary"] == 0.4
    assert [row["ours"] for row in jobs[1]["rows"]] == [pytest.approx(1.1), None]
    assert jobs[3]["instructions_over_ordinary"] == 0.9
    assert "pmu_over_ordinary" not in jobs[3]


def test_nothing_to_compare_with() -> None:
    alone, without = job("partial", 7, model="other"), job("partial")
    assert compared([alone, without, job("ordinary")])[:2] == [alone, without]
