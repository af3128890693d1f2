"""The four numbers for one RAM: parts add up to the metric, and only what is known is drawn."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.report import ram

METRICS: dict[str, Any] = {
    "liveness_bytes": 900,
    "arena_bytes": 1000,
    "linked_bytes": 1000 + 300 + 40 + 120,
    "statics_bytes": 1000 + 300 + 40,
    "weight_sram_bytes": 300,
    "stack_measured_bytes": 96,
    "sram_bytes": 1000 + 300 + 40 + 96,
}


def test_each_row_adds_up_to_its_metric() -> None:
    found = ram.rows(METRICS)
    assert [row.title for row in found] == ["liveness", "plan", "linked", "measured"]
    for row in found:
        assert row.bytes == METRICS[row.metric] and row.counts
        assert {kind for kind, _ in row.parts} <= set(ram.COUNTED)


@pytest.mark.parametrize(
    ("missing", "titles"),
    [
        (("liveness_bytes",), []),
        (("linked_bytes", "statics_bytes"), ["liveness", "plan"]),
        (("stack_measured_bytes",), ["liveness", "plan", "linked"]),
    ],
)
def test_what_is_not_known_is_left_out(missing: tuple[str, ...], titles: list[str]) -> None:
    known = {name: value for name, value in METRICS.items() if name not in missing}
    assert [row.title for row in ram.rows(known)] == titles


def test_an_arena_outside_of_the_chip_is_not_in_the_linked_ram() -> None:
    inside = METRICS | {"arena_in_sram": False, "statics_bytes": 340, "linked_bytes": 460}
    linked = ram.rows(inside)[2]
    assert linked.bytes == 460 and ram.ARENA not in dict(linked.parts)


def test_the_picture_is_as_wide_as_its_longest_row_or_the_ram() -> None:
    found = ram.rows(METRICS)
    assert ram.scale(found, 1 << 20) == 1.25 * METRICS["linked_bytes"]
    assert ram.scale(found, 1500) == 1500
    assert ram.scale(found, 1200) == METRICS["linked_bytes"]
    assert ram.scale((), 0) == 0
