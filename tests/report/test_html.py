"""The report stands alone, says what the numbers say, and is byte-stable."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.plan.cost import cost
from pipeline.report.html import bars, explain_peak, groups, number, write
from tests.plan.fixtures import FIXTURES, herringbone
from tests.plan.test_cost import BOARD
from tests.report.test_ram import METRICS as RAM

METRICS = {
    "status": "ok",
    "pmu_bytes": 42.5,
    "arena_bytes": 43,
    "sram_limit_bytes": 2048,
    "weight_sram_bytes": 1513,
    "stack_bytes": 60,
    "sram_bytes": 1620,
    "flash_bytes": 9000,
    "flash_limit_bytes": 32256,
    "accuracy_int": 0.9876,
    "mismatches_device": 0,
    "cycles": 1000,
    "layers": [
        {"layer": "conv <a>", "macs": 250, "cycles": 875, "cycles_per_mac": 3.5},
        {"layer": "rest", "macs": 0, "cycles": 125},
    ],
}
PROVENANCE = {"hardware": "Arduino <Uno>", "plan": "abc"}


class Strict(HTMLParser):
    """Collects text and outside references; checks that tags close."""

    def __init__(self) -> None:
        super().__init__()
        self.text, self.open, self.outside = [], [], []

    def handle_starttag(self, tag, attrs) -> None:
        values = dict(attrs)
        self.outside += [v for k, v in values.items() if k in ("src", "href") and v[:1] != "#"]
        if tag not in ("meta", "br", "path", "use", "rect", "link", "!doctype"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs) -> None:
        pass

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        self.text.append(data)


@pytest.mark.parametrize("name", FIXTURES)
def test_report_is_whole_and_stands_alone(name: str, tmp_path: Path) -> None:
    plan, graph = FIXTURES[name](np.random.default_rng(0))
    result = cost(plan, graph, BOARD)
    pages = []
    for attempt in "ab":
        path = tmp_path / f"{attempt}.html"
        write(path, graph, plan, result, METRICS, PROVENANCE)
        pages.append(path.read_text())
    assert pages[0] == pages[1], "the report is not byte-stable"
    parser = Strict()
    parser.feed(pages[0])
    assert not parser.open and not parser.outside
    text = " ".join(parser.text)
    assert "Arduino <Uno>" in text and "0.9876" in text
    assert "conv <a>" in text and "87.5" in text and " 3.5" in text
    assert f"peak {result.pmu_bytes:g} B" in text
    for op in graph.operators:
        assert op.name in text
    assert ("Tracks" in text) == (len(plan.tracks) > 1)
    assert not re.search(r"https?://(?!www\.w3\.org)", pages[0])


def test_peak_is_explained() -> None:
    plan, graph = herringbone(np.random.default_rng(0))
    result = cost(plan, graph, BOARD)
    shared = 36 + 24 - result.pmu_bytes
    assert f"x 36 B + y 24 B would take 60 B apart; {shared:g} B are shared" in explain_peak(
        plan, result
    )


def test_bars_add_up_to_what_was_measured() -> None:
    sram, flash = bars(METRICS)
    assert sram.used_bytes == 1620 and dict(sram.parts)["other"] == 4
    assert flash.used_bytes == 9000
    over = bars({**METRICS, "weight_sram_bytes": 3000, "sram_bytes": None})[0]
    assert over.scale_bytes == over.used_bytes > over.limit_bytes


def test_what_lies_outside_of_the_chip_has_bars_of_its_own() -> None:
    metrics = {
        "sram_limit_bytes": 2048, "sram_bytes": 224, "stack_bytes": 200, "arena_bytes": 16_512,
        "arena_in_sram": False, "outside": {"sdram": (16_512, 8_388_608)},
    }  # fmt: skip
    chip, sdram = bars(metrics)
    assert (chip.title, chip.used_bytes) == ("SRAM", 224)
    assert (sdram.title, sdram.used_bytes, sdram.limit_bytes) == ("sdram", 16_512, 8_388_608)


def test_numbers_read_well() -> None:
    assert number(94928) == "94\u202f928" and number(434.5) == "434.5"
    assert number(0.98765) == "0.9877" and number("ok") == "ok" and number(True) == "True"


def test_what_is_modelled_says_so() -> None:
    measured = groups({**METRICS, "latency_us": 5.0, "energy_uj": 2.0})["Time and energy"]
    assert set(measured) == {"latency_us", "cycles", "energy_uj (modelled)"}
    band = {"latency_us": 5.0, "latency_low_us": 4.0, "latency_high_us": 6.0, "instructions": 9}
    found = groups({**METRICS, **band})["Time and energy"]
    assert {"cycles (modelled)", "latency_us (modelled)", "instructions"} < set(found)


def page(folder: Path, metrics: dict[str, Any]) -> str:
    plan, graph = herringbone(np.random.default_rng(0))
    found = {"status": "ok", "sram_bytes": 0, **metrics}
    write(folder / "a.html", graph, plan, cost(plan, graph, BOARD), found, PROVENANCE)
    return (folder / "a.html").read_text()


def test_a_modelled_latency_says_whether_it_was_checked(tmp_path: Path) -> None:
    band = {"latency_us": 5.0, "latency_low_us": 4.0, "latency_high_us": 6.0}
    assert "not validated" in page(tmp_path, band)
    checked = page(tmp_path, band | {"latency_error_pct": 5.0, "latency_evidence": "four networks"})
    assert "within 5 % of four networks" in checked and "not validated" not in checked


def test_four_numbers_for_one_ram_are_drawn(tmp_path: Path) -> None:
    found = page(tmp_path, RAM)
    assert found.count('<div class="picture">') == 4
    for name in ("liveness_bytes", "arena_bytes", "linked_bytes", "sram_bytes"):
        assert f"{number(RAM[name])} B" in found
    assert 'class="picture"' not in page(tmp_path, {})


def test_there_is_a_card_where_something_is_on_it() -> None:
    nothing = {"card_read_bytes": 0, "card_write_bytes": 0, "wear": 0}
    assert "Card" not in groups({**METRICS, **nothing})
    assert groups({**METRICS, **nothing, "card_read_bytes": 512})["Card"]["wear"] == 0


def test_random_weights_have_no_accuracy() -> None:
    assert groups({**METRICS, "agreement_float": 1.0})["Accuracy"]["accuracy_int"] == 0.9876
    assert "Accuracy" not in groups({**METRICS, "random_weights": True})


def test_a_run_without_stack_card_or_clock_has_a_report(tmp_path: Path) -> None:
    plan, graph = herringbone(np.random.default_rng(0))
    write(tmp_path / "r.html", graph, plan, cost(plan, graph, BOARD), {"status": "ok"}, PROVENANCE)
    text = (tmp_path / "r.html").read_text()
    assert "modelled" not in text and "deepest stack" not in text


def test_a_computer_has_no_bars_and_no_limit() -> None:
    native = {**METRICS, "sram_limit_bytes": 1 << 30, "flash_limit_bytes": 1 << 32}
    assert bars(native) == () and len(bars(METRICS)) == 2
    assert "sram_limit_bytes" not in groups(native)["Memory"]
    assert groups(METRICS)["Memory"]["sram_limit_bytes"] == 2048
