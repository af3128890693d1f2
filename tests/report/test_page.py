"""Pages stand alone, say what the numbers say, are byte-stable, and have the palette's colours."""

import base64
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pipeline import passes, verdict
from pipeline.errors import ThimbleError
from pipeline.plan.cost import cost
from pipeline.report import figures, page, palette
from pipeline.report.images import MOST_CLASSES, SHOWN, picture, predictions
from pipeline.report.savings import savings
from pipeline.report.template import ASSETS
from pipeline.timing.bars import bars
from pipeline.timing.simulate import simulate
from tests.graphs import Chained, Net
from tests.plan.fixtures import herringbone
from tests.plan.test_cost import BOARD
from tests.report.pages import KINDS, METRICS, PROVENANCE, made, write
from tests.report.test_headline import FOUR as RAM
from tests.tiers import quick
from tests.timing.test_simulate import ROWS, rows, slow, swapped


class Strict(HTMLParser):
    """Collects text and outside references; checks that tags close."""

    def __init__(self) -> None:
        super().__init__()
        self.text, self.open, self.outside = [], [], []

    def handle_starttag(self, tag, attrs) -> None:
        values = dict(attrs)
        given = [v for k, v in values.items() if k in ("src", "href")]
        self.outside += [each for each in given if not each.startswith(("#", "data:"))]
        if tag not in ("meta", "br", "wbr", "img", "link", "!doctype"):
            self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        self.text.append(data)


def told(text: str) -> str:
    """Return what a person reads; the page is whole, and nothing is fetched."""
    parser = Strict()
    parser.feed(text)
    assert not parser.open and not parser.outside and "http" not in text
    return " ".join(" ".join(parser.text).split())


def map_of(text: str) -> dict[str, Any]:
    found = re.search(r'id="map-data">(.*?)</script>', text, re.DOTALL)
    assert found
    return dict(json.loads(found[1]))


@pytest.mark.parametrize("kind", quick(["slots", "swap", "row_ring"], KINDS, ci=2))
def test_a_page_of_each_kind_of_plan(kind: str, tmp_path: Path) -> None:
    plan, graph, hardware = made(kind)
    text = write(tmp_path / "plan.html", plan, graph, hardware)
    said, found = told(text), map_of(text)
    assert write(tmp_path / "again.html", plan, graph, hardware) == text
    assert all(op.name in said for op in graph.operators)
    assert ("Does not fit" in said) == (kind == "too large")
    assert [each["name"] for each in found["tracks"]] == [track.name for track in plan.tracks]
    assert found["unit"] == ("us" if kind == "swap" else "share")
    for memory in found["memories"]:
        assert len({len(column) for column in memory["pieces"].values()}) == 1
        assert len(memory["pieces"]["low"]) >= len(plan.tracks[0].steps) > 0


def test_a_report_says_what_was_measured(tmp_path: Path) -> None:
    """Figures have words, and keep their keys."""
    text = write(tmp_path / "r.html", *made("slots"), ran=True)
    said = told(text)
    assert "Arduino <Uno>" in said and "conv <a>" in said
    assert "float 99.00 % → integer 98.76 % → device 98.00 %" in said
    assert "SRAM needs 1,620 of 2,048 B: 428 B are left" in said
    assert "29.8 ms" in said and "1.79 mJ" in said
    for key in ("pmu_bytes", "accuracy_int", "mismatches_device", "arena_bytes"):
        assert f'title="{key}"' in text and key not in said
    assert 'class="end"' not in text
    text = write(tmp_path / "plan.html", *made("too large"))
    assert re.search(r'class="end" style="left: 87\.\d+%"', text), "where the memory ends"
    assert "289 B too many, beyond the line" in text


def test_a_swapped_plan_has_core_and_card_on_one_axis(tmp_path: Path) -> None:
    """Setting, bound, and what more SRAM and other plans would give are said."""
    plan, graph, hardware = made("swap")
    text = write(tmp_path / "plan.html", plan, graph, hardware)
    for said in ("Setting <code>paper</code>", "card alone: the core waits", "first failure"):
        assert said in text
    found = map_of(text)
    assert [track["name"] for track in found["tracks"]] == ["cpu", "io", "back"]
    assert all(len(track["start"]) == len(track["took"]) == ROWS for track in found["tracks"])
    stops = [s + t for e in found["tracks"] for s, t in zip(e["start"], e["took"], strict=True)]
    assert found["end"] == max(stops)
    costs = {"timing": "card", "read_bytes_per_s": 1e6, "write_bytes_per_s": 1e6}
    row = {"latency_us": 5e6, "io_us": 1e6, "energy_uj": 2e6, "written_bytes": 4096}
    tried = [{**row, "years_first_failure": 12.0}, {**row, "years_first_failure": None}]
    more = {"maps_stay_bytes": 292_224, "weights_stay_bytes": 4_486_784, "trade": tried}
    card = write(tmp_path / "plan.html", plan, graph, slow(**costs), bound_us=192.0, **more)
    for said in ("Setting <code>card</code>", "which is proved", "tried, too", "12 years",
                 "292,224 B of SRAM on, weights from 4,486,784 B"):  # fmt: skip
        assert said in card and said not in text


def test_a_modelled_latency_and_four_numbers_for_one_ram(tmp_path: Path) -> None:
    plan, graph, hardware = made("slots")
    band = {"latency_us": 5.0, "latency_low_us": 4.0, "latency_high_us": 6.0, **RAM}
    checked = band | {"latency_error_pct": 5.0, "latency_evidence": "four networks"}
    costs, pages, path = cost(plan, graph, hardware), list[str](), tmp_path / "r.html"
    for metrics in (band, checked):
        page.write(path, graph, plan, hardware, costs, {}, {"status": "ok", **metrics}, PROVENANCE)
        pages.append(path.read_text())
    assert "not validated" in pages[0] and "not validated" not in pages[1]
    assert "within 5 % of four networks" in pages[1]
    assert pages[0].count('<div class="picture">') == 4
    for name in ("liveness_bytes", "arena_bytes", "linked_bytes", "sram_bytes"):
        assert f"{RAM[name]:,} B" in pages[0]


def test_few_bars_stand_for_many_steps_and_no_bound_is_beaten() -> None:
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
    graph, hardware = rows(), slow()
    plan = replace(swapped(graph, 1), notes=(("bound_us", 1e9),))
    with pytest.raises(verdict.ThimbleError, match="less than the proven bound"):
        verdict.check(plan, graph, hardware)


@pytest.mark.parametrize("each", quick(["timeline"], ["layer", "study", "timeline"]))
def test_figures_are_drawn(each: str) -> None:
    graph, hardware = rows(), slow()
    found = verdict.check(swapped(graph, 2), graph, hardware)
    other = verdict.check(swapped(graph, 1), graph, hardware)
    job = {"model": "net", **found}
    more = {"model": "net", **other, "set": {"strategy.buffer_bytes": 2048}}
    spec = {"each": each, "y": ["compute_us", "io_us"], "title": "a figure", "log": True}
    jobs = [job, more, job, more]
    picture = figures.png(spec, jobs)
    assert picture and picture.startswith(b"\x89PNG") and picture == figures.png(spec, jobs)
    assert figures.png(spec, [{"model": "net"}]) is None


OUTPUTS = np.array([[9, 0, 0], [0, 5, 4], [7, 0, 1], [2, 1, 0], [0, 3, 9]], np.int8)
LABELS = np.array([0, 1, 2, 1, 2])
IMAGES = np.arange(5 * 4 * 4, dtype=np.uint8).reshape(5, 4, 4, 1)


def test_counts_and_the_worst_first() -> None:
    found = predictions(OUTPUTS, LABELS, IMAGES)
    assert found
    assert found.confusion == ((1, 0, 0), (1, 1, 0), (1, 0, 1)) and found.largest == 1
    assert [(each.number, each.label, each.said) for each in found.worst] == [(2, 2, 0), (3, 1, 0)]
    assert [each.number for each in found.typical] == [1, 4, 0]
    found = predictions(np.array([[-128, 127]], np.int8), np.array([0]), IMAGES[:1])
    assert found and [each.said for each in found.worst] == [1] and not found.typical


def test_nothing_is_said_if_nothing_is_classified() -> None:
    for given in ((OUTPUTS, LABELS[:0]), (OUTPUTS[:, :1], LABELS * 0), (OUTPUTS, LABELS + 5)):
        assert predictions(*given, IMAGES) is None


def test_few_are_shown_as_they_are_and_no_matrix_of_many_classes() -> None:
    rng = np.random.default_rng(0)
    many = rng.integers(-128, 128, (200, MOST_CLASSES + 1)).astype(np.int8)
    labels = rng.integers(0, MOST_CLASSES + 1, 200)
    found = predictions(many, labels, np.zeros((200, 2, 2, 1), np.uint8))
    assert found and not found.confusion and len(found.worst) == SHOWN and not found.largest
    for image in (IMAGES[3], np.full((300, 200, 3), 7, np.uint8)):
        head, _, data = picture(image).partition(",")
        assert head == "data:image/png;base64"
        drawn = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
        assert max(drawn.shape) <= 96 and drawn.flat[0] == image.flat[0]
    assert picture(np.zeros((4, 4, 2), np.uint8)) == "" == picture(np.zeros((4, 4, 1), np.float32))


def test_the_page_has_them(tmp_path: Path) -> None:
    plan, graph, hardware = made("slots")
    costs, found = cost(plan, graph, hardware), predictions(OUTPUTS, LABELS, IMAGES)
    for shown in (found, None):
        page.write(tmp_path / "r.html", graph, plan, hardware, costs, {}, METRICS, PROVENANCE,
                   predictions=shown)  # fmt: skip
        text = (tmp_path / "r.html").read_text()
        assert ("said 0, is 2" in text) == ("Confusion matrix" in text) == (shown is not None)
        pictures = re.findall(r'<img src="(.*?)"', text)
        assert len(pictures) == (5 if shown else 0)
        assert all(each.startswith("data:image/png;base64,") for each in pictures)


SAVED = [
    {"pass": "", "weight_bytes": 219_064, "macs": 7_489_664, "operators": 32},
    {"pass": "fold_reshape", "weight_bytes": 219_064, "macs": 7_489_664, "operators": 31},
    {"pass": "fold_pad", "weight_bytes": 219_064, "macs": 7_500_000, "operators": 31},
    {"pass": "dead_channels", "weight_bytes": 33_374, "macs": 3_500_000, "operators": 31},
]


def test_each_size_says_which_pass_made_it_smaller(tmp_path: Path) -> None:
    weights, macs, operators = savings(SAVED)
    assert (weights.before, weights.after, weights.by) == (219_064, 33_374, ("dead_channels",))
    assert macs.by == ("dead_channels",) and operators.by == ("fold_reshape",)
    assert round(weights.share, 3) == 0.152
    assert savings(()) == () and savings(SAVED[:1]) == () and savings(SAVED[::-1]) == ()
    plan, graph = herringbone(np.random.default_rng(0))
    costs = cost(plan, graph, BOARD)
    for saved, said in ((SAVED, True), (SAVED[:1], False)):
        page.write(tmp_path / "r.html", graph, plan, BOARD, costs, {}, {"status": "ok"}, {}, saved)
        text = (tmp_path / "r.html").read_text()
        assert ("33,374" in text and "dead_channels" in text) == said


def test_the_passes_are_measured_one_by_one() -> None:
    graph = Chained(Net((4, 4, 2))).conv(3).reshape((48,)).graph()
    names = ["fold_reshape", "fold_pad"]
    found = [(name, passes.size(each)) for name, each in passes.one_by_one(graph, names)]
    assert [name for name, _ in found] == ["", *names]
    assert found[0][1]["operators"] == len(graph.operators)
    assert found[-1][1] == passes.size(passes.applied(graph, names))
    with pytest.raises(ThimbleError, match="no pass magic"):
        list(passes.one_by_one(graph, ["magic"]))


def test_pages_have_the_palette_and_no_other_colour() -> None:
    css = palette.css()
    for name, colour in palette.ALL.items():
        assert f"--{name}:{colour.light}" in css and f"--{name}:{colour.dark}" in css
    for asset in ASSETS.iterdir():
        assert not re.findall(
            r"#[0-9a-f]{6}\b|#[0-9a-f]{3}\b(?=[;\s])|rgba?\(\s*\d", asset.read_text()
        ), asset.name
