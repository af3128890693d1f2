"""Which axes a sweep's picture has, which jobs are on the front, and that it can be drawn."""

from __future__ import annotations

import io
from itertools import product
from typing import Any

import matplotlib.image
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from pipeline.report.pareto import NAMED, Point, axes_of, front, png


def job(status: str = "ok", **metrics: Any) -> dict[str, Any]:
    return {"status": status, "sram_limit_bytes": 2048, **metrics}


UNFIT = job("infeasible", pmu_bytes=760, resource="SRAM", needed_bytes=2337, available_bytes=2048)


def test_the_axes_are_metrics_that_differ() -> None:
    same = {"sram_bytes": 2000, "pmu_bytes": 430.5, "accuracy_int": 0.99}
    fast, slow = job(**same, latency_us=5.0), job(**same, latency_us=6.0)
    assert axes_of([fast, slow]) == ("sram_bytes", "latency_us")
    other = {**same, "pmu_bytes": 500, "accuracy_int": 0.98}
    assert axes_of([job(**same), job(**other), UNFIT]) == ("pmu_bytes", "accuracy_int")
    assert axes_of([job(pmu_bytes=430.5), job(pmu_bytes=500), UNFIT]) == ("pmu_bytes", None)
    assert axes_of([job(**same), job("failed")]) == ("sram_bytes", None)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12),
    st.booleans(),
)
def test_the_front_is_what_no_other_beats(places: list[tuple[int, int]], more: bool) -> None:
    points = [Point(n, "", float(x), float(y)) for n, (x, y) in enumerate(places)]
    sign = -1 if more else 1

    def beats(a: Point, b: Point) -> bool:
        one, other = (a.x, sign * a.y), (b.x, sign * b.y)
        return one != other and all(p <= q for p, q in zip(one, other, strict=True))

    best = {p for p in points if not any(beats(other, p) for other in points)}
    found = front([*points, Point(99, "", -1.0, float("nan"))], more)
    assert {(p.x, p.y) for p in found} == {(p.x, p.y) for p in best}
    assert len(found) == len({(p.x, p.y) for p in best}), "one of those at the same place"
    assert [p.x for p in found] == sorted(p.x for p in found)


@pytest.mark.parametrize(("count", "metric"), [(3, None), (6, "latency_us"), (40, "accuracy_int")])
def test_it_is_drawn(count: int, metric: str | None) -> None:
    jobs = [
        job(sram_bytes=1500 + 10 * n, **({metric: (n * 7 % 5 + 1) / 10} if metric else {}))
        for n in range(count)
    ]
    names = [f"strategy={n} layout=slots" for n in range(count + 2)]
    picture = png([*jobs, UNFIT, job("failed")], names)
    assert picture is not None
    image = matplotlib.image.imread(io.BytesIO(picture), format="png")
    assert image.shape[0] > 200 and image.shape[1] > 1000
    assert picture == png([*jobs, UNFIT, job("failed")], names), "equal jobs, equal bytes"
    without = png([*jobs, job("failed"), job("failed")], names)
    assert (without != picture) == (count <= NAMED), "one that does not fit is named"


def test_what_does_not_fit_has_no_point(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Figure] = []
    save = Figure.savefig
    monkeypatch.setattr(
        Figure, "savefig", lambda self, *a, **k: drawn.append(self) or save(self, *a, **k)
    )
    png([job(sram_bytes=10, latency_us=7), job(sram_bytes=12, latency_us=6), UNFIT], list("abc"))
    (axes,) = drawn[0].axes
    assert sorted(x for dots in axes.collections for x in dots.get_offsets()[:, 0]) == [10, 12]
    assert axes.get_xlim()[1] < 13
    assert "2  c: does not fit" in drawn[0].legends[0].get_title().get_text()


def test_nothing_to_draw() -> None:
    one = job(sram_bytes=1)
    for jobs in ([one], [one, UNFIT], [one, one], [job()] * 2, [job("failed")] * 2, []):
        assert png(jobs, [str(n) for n in range(len(jobs))]) is None


def test_every_pair_of_axes_is_found() -> None:
    for x, y in product(("sram_bytes", "pmu_bytes", "flash_bytes"), ("energy_uj", "macs_executed")):
        assert axes_of([job(**{x: 10, y: 7}), job(**{x: 12, y: 6}), UNFIT]) == (x, y)
