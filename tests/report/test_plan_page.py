"""plan.html and the figures of experiments: all that the simulation says, and nothing fetched."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline import verdict
from pipeline.hardware import Hardware
from pipeline.report import figures, plan_page
from pipeline.strategies.ordinary import Ordinary
from pipeline.timing.bars import bars
from pipeline.timing.simulate import simulate
from tests.strategies.chains import board
from tests.timing.toys import ROWS, rows, slow, swapped


def page(tmp_path: Path, hardware: Hardware, **report: Any) -> str:
    graph = rows(8, 3)
    plan = swapped(graph, 2)
    found = verdict.check(plan, graph, hardware) | report
    plan_page.write(tmp_path / "plan.html", graph, plan, hardware, found)
    return (tmp_path / "plan.html").read_text()


def test_a_page_of_a_plan_with_a_card(tmp_path: Path) -> None:
    text = page(tmp_path, slow(first_failure_cycles=10.0, read_ma=1.0, write_ma=1.0))
    for said in ("Setting <code>paper</code>", "card alone: the core waits", "first failure"):
        assert said in text
    assert "http" not in re.sub(r"http\S*w3\.org\S*", "", text)
    found = json.loads(re.search(r'id="bars">(.*?)</script>', text, re.DOTALL)[1])  # type: ignore[index]
    assert [track["name"] for track in found["tracks"]] == ["cpu", "io", "back"]
    assert all(len(track["start"]) == len(track["took"]) == ROWS for track in found["tracks"])
    last = max(
        s + t for each in found["tracks"] for s, t in zip(each["start"], each["took"], strict=True)
    )
    assert found["end"] == last


def test_the_bound_and_the_setting_are_said(tmp_path: Path) -> None:
    costs = {"timing": "card", "read_bytes_per_s": 1e6, "write_bytes_per_s": 1e6}
    text = page(tmp_path, slow(**costs), bound_us=192.0)
    assert "Setting <code>card</code>" in text and "which is proved" in text


def test_a_plan_without_a_card_has_a_page(tmp_path: Path) -> None:
    graph, hardware = rows(), board(streams=False)
    plan = Ordinary().plan(graph, hardware)
    report = verdict.check(plan, graph, hardware)
    plan_page.write(tmp_path / "plan.html", graph, plan, hardware, report)
    text = (tmp_path / "plan.html").read_text()
    assert "Tracks" not in text and "pseudo-code" in text


def test_few_bars_stand_for_many_steps() -> None:
    graph = rows(3, 2)
    plan, hardware = swapped(graph, 2), slow()
    timeline = simulate(plan, graph, hardware)
    whole, few = (bars(plan, timeline, ["conv2d0"], most) for most in (1000, 6))
    assert sum(len(each.start_us) for each in whole) == 3 * ROWS
    assert sum(len(each.start_us) for each in few) <= 6
    for one, other in zip(whole, few, strict=True):
        assert one.steps.sum() == other.steps.sum() == ROWS
        assert one.busy_us.sum() == pytest.approx(other.busy_us.sum())
        assert (one.start_us[0], one.stop_us[-1]) == (other.start_us[0], other.stop_us[-1])


@pytest.mark.parametrize("each", ["layer", "study", "timeline"])
def test_figures_are_drawn(each: str) -> None:
    graph, hardware = rows(), slow()
    found = verdict.check(swapped(graph, 2), graph, hardware)
    other = verdict.check(swapped(graph, 1), graph, hardware)
    job = {"model": "net", **found, "study": [{"set": {"strategy.buffer_bytes": 2048}, **other}]}
    spec = {"each": each, "y": ["compute_us", "io_us"], "title": "a figure", "log": True}
    picture = figures.png(spec, [job, job])
    assert picture and picture.startswith(b"\x89PNG") and picture == figures.png(spec, [job, job])
    assert figures.png(spec, [{"model": "net"}]) is None


def test_the_simulation_is_not_faster_than_a_proven_bound() -> None:
    graph, hardware = rows(), slow()
    plan = replace(swapped(graph, 1), notes=(("bound_us", 1e9),))
    with pytest.raises(verdict.ThimbleError, match="less than the proven bound"):
        verdict.check(plan, graph, hardware)
