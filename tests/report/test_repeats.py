"""Jobs that differ by their seed alone: averages, how far apart, and the figure of them."""

from __future__ import annotations

from typing import Any

from pipeline.report import figures, repeats
from pipeline.report.seeds import figure

SPEC = {"each": "seeds", "colors": "prune", "marks": "strategy", "title": "Seeds"}


def job(strategy: str, prune: str, seed: int, bytes_: float, right: float, **more: Any) -> Any:
    words = [f"strategy={strategy}", f"prune={prune}", f"seed={seed}"]
    found = {"overrides": words, "status": "ok", "pmu_bytes": bytes_, "accuracy_int": right}
    return {**found, **more}


JOBS = [
    job("joint", "pex", 1, 4000, 0.80), job("joint", "pex", 2, 4200, 0.82),
    job("joint", "pex", 3, 9999, 0.99, status="infeasible"),
    job("joint", "width", 1, 4000, 0.70), job("joint", "width", 2, 4000, 0.74),
    job("partial", "pex", 1, 8000, 0.84, sram_bytes=9000), job("partial", "pex", 2, 8000, 0.86),
]  # fmt: skip


def test_averages_of_what_ended() -> None:
    first, _, last = repeats.rows(JOBS)
    assert first["strategy"] == "joint" and (first["seeds"], first["tried"]) == (2, 3)
    assert (first["accuracy_int_least"], first["accuracy_int_most"]) == (0.80, 0.82)
    assert abs(first["accuracy_int_mean"] - 0.81) < 1e-9 and first["pmu_bytes_mean"] == 4100
    assert "seed" not in first and "sram_bytes_mean" not in last  # one of them has none


def test_without_repetition_there_is_nothing_to_average() -> None:
    apart = [JOBS[0], JOBS[3], JOBS[5]]
    assert repeats.rows(apart) == [] and figure(SPEC, apart) is None
    assert repeats.rows([]) == []


def test_a_point_for_each_with_its_spread() -> None:
    drawn = figure(SPEC, JOBS)
    assert drawn is not None
    (axes,) = drawn.axes
    _, names = axes.get_legend_handles_labels()
    assert names == ["pex, joint", "width, joint", "pex, partial"]
    (middle, *_), bars = axes.containers[0].lines[0].get_xydata(), axes.containers[0].lines[2]
    assert middle.tolist() == [4100.0, 81.0]
    assert bars[1].get_segments()[0][:, 1].round(6).tolist() == [80.0, 82.0]
    assert axes.containers[0].lines[0].get_color() == axes.containers[2].lines[0].get_color()
    picture = figures.png(SPEC, JOBS)
    assert picture and picture == figures.png(SPEC, JOBS)
