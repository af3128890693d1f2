"""Top of the page, and the bars and tables below: verdict, figures, memories, words, peak."""

import re
from dataclasses import replace
from typing import Any

import numpy as np

from pipeline.home import ROOT
from pipeline.plan.cost import cost
from pipeline.plan.fit import roomy
from pipeline.report import headline, peak, ram
from pipeline.report.memories import bars, constants, planned
from pipeline.report.results import groups
from pipeline.strategies.joint import Joint
from pipeline.words import METRICS as ALL_METRICS
from pipeline.words import PASSES, energy, large, memory, number, si, time, valued
from tests.boards import load_hardware
from tests.plan.fixtures import herringbone, residual
from tests.plan.test_cost import BOARD
from tests.report.pages import METRICS, made
from tests.strategies import nets

SRAM_WEIGHTS = replace(BOARD, weights_in="sram")
WEIGHTS = {"card": 1000.0, "flash": 24.0}
UNFIT = {
    "status": "infeasible", "resource": "SRAM", "needed_bytes": 2337, "available_bytes": 2048,
    "advice": "try fewer channels",
}  # fmt: skip


def test_the_verdict_says_by_how_much() -> None:
    found = headline.verdict(UNFIT, {})
    assert (found.word, found.kind, found.advice) == (
        "Does not fit", "infeasible", "Try fewer channels",
    )  # fmt: skip
    assert found.said == "SRAM needs 2,337 of 2,048 B: 289 B too many"
    fits = headline.verdict({**UNFIT, "status": "ok", "needed_bytes": 2000}, {})
    assert fits.said == "SRAM needs 2,000 of 2,048 B: 48 B are left"
    assert headline.verdict(UNFIT, METRICS).said == "SRAM needs 1,620 of 2,048 B: 428 B are left"
    wrong = headline.verdict({}, {"status": "failed", "error": "3 images differ"})
    assert (wrong.word, wrong.said) == ("Wrong", "3 images differ")
    assert "computer" in headline.verdict({"status": "ok"}, {}).said


def titles(metrics: dict[str, Any], **schedule: Any) -> dict[str, headline.Figure]:
    known = {"weight_bytes": 10.0, "macs": 5, "macs_executed": 7} | schedule
    return {each.title: each for each in headline.figures(known, metrics, WEIGHTS)}


def test_the_large_figures_of_a_plan_and_of_a_run() -> None:
    plan = titles({})
    assert list(plan) == ["Peak memory", "Weights and biases", "Work"]
    assert plan["Work"].beside == "multiply–accumulates, 2 of them again"
    assert plan["Weights and biases"].beside == "1,000 B on the card, 24 B in flash"
    ran = titles(METRICS)
    assert list(ran) == ["Peak memory", "Accuracy", "Latency", "Energy"]
    assert ran["Accuracy"].beside == "float 99.00 % → integer 98.76 % → device 98.00 %"
    assert "0 differ" in ran["Accuracy"].how and "cycle by cycle" in ran["Latency"].how
    found = titles(METRICS | {"random_weights": True})
    assert "Accuracy" not in found and found["Same outputs"].value == "100 of 100"
    assert "Accuracy" not in groups({**METRICS, "random_weights": True})


def test_a_modelled_time_says_so() -> None:
    band = {"latency_low_us": 20_000.0, "latency_high_us": 40_000.0}
    found = titles(METRICS | band)["Latency"]
    assert found.beside == "20 ms to 40 ms" and "not validated" in found.how
    assert "within 5 %" in titles(METRICS | band | {"latency_error_pct": 5.0})["Latency"].how
    swap = {"makespan_us": 4e6, "frames": 2, "overhead_pct": 3.5}
    assert titles({}, **swap)["Time"].value == "2 s"
    ran = titles({"latency_us": 2.1e6}, **swap)["Time"]
    assert ran.value == "2.1 s" and ran.beside.startswith("the plan says 2 s, 3.5 % over")
    assert "weights while they are in SRAM" in titles({}, **swap)["Peak memory"].how
    planned = titles({}, modelled_us=38_346.1)["Computing"]
    assert planned.value == "38.3 ms" and planned.beside == "modelled, without the code"
    assert titles(METRICS, modelled_us=38_346.1)["Latency"].value == "29.8 ms"
    only = titles({"status": "ok", "instructions": 1234})
    assert only["Instructions"].value == "1,234"


def test_bars_add_up_to_what_was_measured() -> None:
    sram, flash = bars(METRICS, SRAM_WEIGHTS)
    assert sram.used_bytes == 1620 and sram.free_bytes == 428
    assert dict(sram.parts) == {"weights": 1513, "tensor": 43, "statics": 4, "stack": 60}
    assert dict(flash.parts) == {"code": 9000 - 1513, "weights": 1513}
    assert bars(METRICS, BOARD)[1].parts == flash.parts
    streamed = replace(BOARD, weights_in="stream", streams_input=True)
    assert bars(METRICS, streamed)[1].parts == (("code", 9000),)
    over = bars({**METRICS, "weight_bytes": 3000, "sram_bytes": None}, SRAM_WEIGHTS)[0]
    assert over.scale_bytes == over.used_bytes > over.limit_bytes and not over.free_bytes
    native = {**METRICS, "sram_limit_bytes": 1 << 30, "flash_limit_bytes": 1 << 32}
    assert bars(native, BOARD) == (), "a computer has none, and no limit"
    assert "sram_limit_bytes" not in dict(each[:2] for each in groups(native)["Memory"])
    assert ("sram_limit_bytes", 2048, False) in groups(METRICS)["Memory"]


def test_bars_of_a_plan_with_the_stacks_reserve_and_of_what_lies_outside_of_the_chip() -> None:
    metrics = {
        "sram_limit_bytes": 2048, "sram_bytes": 224, "stack_bytes": 200, "arena_bytes": 16_512,
        "arena_in_sram": False, "outside": {"sdram": (16_512, 8_388_608)},
    }  # fmt: skip
    chip, sdram = bars(metrics, BOARD)
    assert (chip.title, chip.used_bytes) == ("SRAM", 224)
    assert (sdram.title, sdram.used_bytes, sdram.limit_bytes) == (
        "External SDRAM", 16_512, 8_388_608,
    )  # fmt: skip
    plan, _, hardware = made("slots")
    (sram,) = planned(plan, hardware)
    assert dict(sram.parts) == {"weights": 1513, "tensor": 431, "stack": 64}
    assert (sram.used_bytes, sram.free_bytes) == (2008, 40)
    assert constants(plan) == {"sram": 1513}
    for bar in bars({**METRICS, "weight_bytes": 1512.5}, SRAM_WEIGHTS):
        assert all(float(size).is_integer() for _, size in bar.parts)


def test_the_peak_is_explained_and_how_to_lower_it() -> None:
    plan, graph = herringbone(np.random.default_rng(0))
    result = cost(plan, graph, BOARD)
    shared = 36 + 24 - result.pmu_bytes
    assert f"x 36 B and y 24 B would take 60 B apart; {shared:g} B are shared" in peak.explain(
        plan, result
    )
    assert "less of x (36 B, the largest then)" in peak.lower(plan, graph, result)
    assert "both reach this peak" not in peak.lower(plan, graph, result)
    plan, graph = residual(np.random.default_rng(0))
    result = cost(plan, graph, BOARD)
    best = sorted({moment.live_bytes for moment in result.timeline})[-2]
    said = peak.lower(plan, graph, result)
    assert f"with {number(best)} B" in said
    assert f"At most {number(result.pmu_bytes - best)} B are to be gained" in said
    assert not peak.scratch(plan, {})
    with_scratch = Joint().plan(nets.ds_cnn((8,) * 2), load_hardware("nucleo_f446re"))
    told = {"arena_bytes": 99, "modelled_us": 7.0}
    said = peak.scratch(with_scratch, told)
    assert re.fullmatch(
        r"The arena of 99 B is fullest at \w+: \d+ B of it are scratch .* there\.", said
    )
    row = {"strategy": peak.WITHOUT, "needed_bytes": 50, "modelled_us": 8000.0}
    more = peak.scratch(with_scratch, {**told, "others": [row]}).removeprefix(said)
    assert more == f" {peak.WITHOUT} takes none, 50 B in all with the stack, and 8 ms for 7 µs."
    plan, graph, hardware = made("slots")
    result = cost(roomy(plan), graph, hardware)
    assert "conv1 and conv2 both reach this peak, and both would" in peak.lower(plan, graph, result)
    buffer = plan.resident[0]
    many = replace(result.peak, buffers=tuple((buffer, 10.0 - n) for n in range(9)), live_bytes=54)
    found = peak.explain(plan, replace(result, timeline=(many,)))
    assert found.count(" B, ") == 3 and "7 B and 5 more, all live at once." in found
    assert peak.listed(["a"]) == "a" and peak.listed(["a", "b", "c"]) == "a, b and c"


def test_everything_has_words_and_numbers_read_well() -> None:
    folder = ROOT / "pipeline" / "passes"
    assert set(PASSES) == {path.stem for path in folder.glob("[a-z]*.py")}
    assert memory("quadspi") == "external flash" and memory("sram2") == "sram2"
    assert len({words for words, _ in ALL_METRICS.values()}) == len(ALL_METRICS)
    assert not any("_" in word for words in ALL_METRICS.values() for word in words)
    assert number(94928) == "94,928" and number(434.5) == "434.5"
    assert number(0.98765) == "0.9877" and number("ok") == "ok" and number(True) == "True"
    assert time(29_800.0) == "29.8 ms" and time(9.2e7) == "92 s" and time(3.0) == "3 µs"
    assert time(24_545.8) == "24.5 ms", "rounded once"
    assert energy(1790.0) == "1.79 mJ" and energy(3.4e7) == "34 J" and energy(5.0) == "5 µJ"
    assert si(15_100_000) == "15.1 MB" and si(0) == "0 B" and si(2e-5, "J") == "20 µJ"
    assert (large(300_774_272), large(1.5e10), large(94_928)) == (
        "301 million", "15 billion", "94,928",
    )  # fmt: skip
    for key, value, said in (
        ("accuracy_int", 0.9876, "98.76 %"), ("latency_us", 29_800.0, "29.8 ms"),
        ("pmu_bytes", 434.5, "434.5 B"), ("overhead_pct", 3.5, "3.5 %"), ("macs", 5, "5"),
        ("energy_uj", 1790.0, "1.79 mJ"), ("macs", None, "–"), ("status", "ok", "ok"),
    ):  # fmt: skip
        assert valued(key, value) == said


FOUR: dict[str, Any] = {
    "liveness_bytes": 900,
    "arena_bytes": 1000,
    "linked_bytes": 1000 + 300 + 40 + 120,
    "statics_bytes": 1000 + 300 + 40,
    "weight_sram_bytes": 300,
    "stack_measured_bytes": 96,
    "sram_bytes": 1000 + 300 + 40 + 96,
}


def test_each_row_of_one_ram_adds_up_to_its_metric() -> None:
    """The picture is as wide as its longest row, or the RAM."""
    found = ram.rows(FOUR)
    assert [row.title for row in found] == ["liveness", "plan", "linked", "measured"]
    for row in found:
        assert row.bytes == FOUR[row.metric] and row.counts
        assert {kind for kind, _ in row.parts} <= set(ram.COUNTED)
    found = ram.rows(FOUR)
    assert ram.scale(found, 1 << 20) == 1.25 * FOUR["linked_bytes"]
    assert ram.scale(found, 1500) == 1500 and ram.scale((), 0) == 0
    assert ram.scale(found, 1200) == FOUR["linked_bytes"]
    inside = FOUR | {"arena_in_sram": False, "statics_bytes": 340, "linked_bytes": 460}
    linked = ram.rows(inside)[2]
    assert linked.bytes == 460 and ram.ARENA not in dict(linked.parts)


def test_what_is_not_known_is_left_out() -> None:
    for missing, count in (("liveness_bytes", 0), ("linked_bytes", 2), ("stack_measured_bytes", 3)):
        known = {name: value for name, value in FOUR.items() if name != missing}
        known.pop("statics_bytes" if missing == "linked_bytes" else missing, 0)
        assert ram.rows(known) == ram.rows(FOUR)[:count]
