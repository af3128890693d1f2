"""sweep.html: every job, its figures, its place on the front and its memory; tried in a browser."""

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from pipeline.artifacts import write_json
from pipeline.plan.cost import cost
from pipeline.plan.fit import roomy
from pipeline.report import page, sweep_page
from pipeline.report.memory_map.thumbnail import COLUMNS, ROWS, thumbnail
from pipeline.report.pareto import unbeaten
from pipeline.runner.table import flat
from pipeline.runner.titles import names
from pipeline.words import METRICS
from tests.report.browser import PAPER, PHONE, fits_across, ink, opened, too_faint, walked
from tests.report.pages import made

FIGURES = [(2023, 23.1, 0.9915), (2004, 25.3, 0.9915), (2000, 23.3, 0.99), (2100, 24.0, 0.99)]


def small(folder: Path, kind: str) -> dict[str, Any]:
    plan, graph, hardware = made(kind)
    costs = cost(roomy(plan), graph, hardware)
    schedule = {"weight_bytes": 1, "macs": 1, "macs_executed": 1}
    return thumbnail(page.write(folder / "plan.html", graph, plan, hardware, costs, schedule))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sweep")


@pytest.fixture(scope="module")
def jobs(folder: Path) -> list[dict[str, Any]]:
    """Four that fit, one that does not, one that failed."""
    found: list[dict[str, Any]] = [
        {"status": "ok", "sram_bytes": sram, "latency_us": 1000 * ms, "accuracy_int": right}
        for sram, ms, right in FIGURES
    ]
    found.append({"status": "infeasible", "resource": "SRAM", "needed_bytes": 2337,
                  "available_bytes": 2048, "pmu_bytes": 760})  # fmt: skip
    found.append({"status": "failed", "error": "</script> <b>broken"})
    for number, job in enumerate(found):
        run = folder / str(number)
        run.mkdir()
        job |= {"run_dir": str(run), "overrides": ["model=m", f"strategy=s{number}"]}
        if job["status"] != "failed":
            kind = "too large" if job["status"] == "infeasible" else "slots"
            write_json(run / "schedule.json", {"thumbnail": small(run, kind)})
    return found


def written(folder: Path, jobs: list[dict[str, Any]]) -> Path:
    called = names([job["overrides"] for job in jobs])
    path = folder / "sweep.html"
    path.write_text(sweep_page.html(folder, jobs, flat(jobs), called))
    return path


def content(path: Path) -> dict[str, Any]:
    text = path.read_text()
    start = text.index('id="sweep-data">') + len('id="sweep-data">')
    return dict(json.loads(text[start : text.index("</script>", start)]))


def test_every_job_is_there_with_what_is_known(folder: Path, jobs: list[dict[str, Any]]) -> None:
    found = content(written(folder, jobs))
    assert [job["name"] for job in found["jobs"]] == [f"strategy=s{n}" for n in range(6)]
    assert found["jobs"][0]["values"] == {"sram_bytes": 2023, "latency_us": 23_100.0,
                                          "accuracy_int": 0.9915}  # fmt: skip
    assert found["jobs"][4]["why"] == "SRAM: 289 B too many"
    assert found["jobs"][4]["values"] == {"pmu_bytes": 760}, "no point is invented"
    assert found["jobs"][5] == {"name": "strategy=s5", "status": "failed", "values": {},
                                "why": "</script> <b>broken", "page": "", "map": None}  # fmt: skip
    assert found["jobs"][0]["page"] == "0/plan.html"
    more = {each["key"]: each["more"] for each in found["metrics"]}
    assert more == {"sram_bytes": False, "accuracy_int": True, "latency_us": False,
                    "pmu_bytes": False}  # fmt: skip
    write_json(folder / "sweep.json", {"overrides": ["strategy=a,b", "target.images=1"]})
    typed = "<code>python run.py -m strategy=a,b target.images=1</code>"
    assert typed in written(folder, jobs).read_text()
    rows = [{"flash_bytes": 5, "macs": n, "status": "ok", "random_weights": True,
             "accuracy_int": 0.1} for n in range(2)]  # fmt: skip
    assert sweep_page.known(rows) == ["macs", "flash_bytes"]
    every = [dict.fromkeys(METRICS, n) for n in range(2)]
    assert set(sweep_page.known(every)) == set(METRICS)
    jobs = [{"model": "m", "hardware": each} for each in ("uno", "mega")]
    assert sweep_page.title(jobs) == "2 jobs of m" and sweep_page.title([{}]) == "1 job"
    assert sweep_page.title(jobs[:1]) == "1 job of m on uno"
    states = ["infeasible", *["ok"] * 7, "failed", "infeasible"]
    assert sweep_page.counted(states) == "7 fit, 2 do not fit, 1 failed"
    assert sweep_page.counted(["infeasible", "ok"]) == "1 fits, 1 does not fit"


def test_a_small_map_shows_what_the_plan_holds(tmp_path: Path) -> None:
    found = small(tmp_path, "slots")
    assert len(found["rows"]) == ROWS and {len(row) for row in found["rows"]} == {COLUMNS}
    assert (found["bytes"], found["weights"], found["stack"], found["limit"]) == (
        430.5, 1512.5, 64, 2048,
    )  # fmt: skip
    letters = "".join(found["rows"])
    assert {"t", "u", "v", "T", "a", "."} <= set(letters) <= set("tuvTUVaA.")
    assert set("tuv") & set(found["rows"][-1]) and set("tuv") & set(found["rows"][0])


@pytest.mark.ci
def test_it_sorts_filters_and_draws(browser: Any, folder: Path, jobs: list[dict[str, Any]]) -> None:
    path = written(folder, jobs)

    def order(page: Any) -> list[str]:
        cells = page.locator("#jobs tbody tr:not([hidden]) td:first-child").all_inner_texts()
        return [cell.removeprefix("strategy=") for cell in cells]

    with opened(browser, path) as page:
        assert order(page) == ["s0", "s1", "s2", "s3", "s4", "s5"] and fits_across(page)
        page.get_by_role("button", name="SRAM used").click()
        assert order(page) == ["s2", "s1", "s0", "s3", "s4", "s5"], "without a figure: last"
        page.get_by_role("button", name="SRAM used").press("Enter")
        assert order(page) == ["s3", "s0", "s1", "s2", "s4", "s5"]
        page.locator("#filter").fill("does not")
        assert order(page) == ["s4"] and page.locator("#shown").inner_text() == "1 of 6"
        assert page.locator("#maps canvas").count() == 5 and ink(page, "#maps canvas") > 2
        page.locator("circle[data-job='2']").focus()
        assert "strategy=s2" in page.locator("#front-said").inner_text()
        assert page.locator("figure.chosen").get_attribute("data-job") == "2"
        assert "SRAM: 289 B too many" in page.locator("#front").inner_text()
    with opened(browser, path) as page:
        reached = walked(page)
        assert reached[:2] == ["across", "up"] and "filter" in reached
        assert {"0", "1", "2", "3", "strategy=s4", "SRAM used"} <= set(reached)
        assert not too_faint(page)
    with opened(browser, path, PHONE, dark=True) as page:
        assert fits_across(page) and not too_faint(page)
    with opened(browser, path, PAPER) as page:
        page.emulate_media(media="print")
        assert fits_across(page), "wider than paper"


@pytest.mark.ci
def test_the_front_is_the_pictures(browser: Any, folder: Path, jobs: list[dict[str, Any]]) -> None:
    """Its names cover neither names nor dots: of four that are near those with room are named."""
    with opened(browser, written(folder, jobs)) as page:
        for x, y, more in (
            ("sram_bytes", "latency_us", False),
            ("latency_us", "accuracy_int", True),
        ):
            page.locator("#across").select_option(x)
            page.locator("#up").select_option(y)
            best = page.locator("#front circle.best").evaluate_all(
                "dots => dots.map(dot => Number(dot.dataset.job))"
            )
            places = [(job[x], job[y]) for job in jobs[:4]]
            assert {places[n] for n in best} == {*unbeaten(places, more)}
    near = [job | {"latency_us": 23_000.0 + n} for n, job in enumerate(jobs[:4])]
    with opened(browser, written(folder, near)) as page:
        boxes = page.locator("#front svg > .label, #front circle").evaluate_all(
            """each => each.map(one => one.getBoundingClientRect())
                .map(box => [box.x, box.y, box.right, box.bottom])"""
        )
    assert len(boxes) > 6  # two of the axes, four dots, some names
    for one, other in combinations(boxes, 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


@pytest.mark.ci
def test_runs_are_compared(browser: Any, folder: Path, jobs: list[dict[str, Any]]) -> None:
    """Maps lie above each other, as wide as the time that their runs take."""
    found = {"runs": ["a", "b"], "differs_first": "config", "config": {"seed": [1, 2]},
             "layers": [{"layer": "x", "cycles": [875, None], "live_bytes": [1, 4]}]}  # fmt: skip
    two, path = [jobs[0] | {"modelled_us": us} for us in (100.0, 50.0)], folder / "compared.html"
    path.write_text(sweep_page.html(folder, two, flat(two), ["a", "b"], found))
    with opened(browser, path, PHONE, dark=True) as page:
        assert fits_across(page) and not too_faint(page)
        said = [each.split() for each in page.locator(".scroll > table").all_inner_texts()]
        assert said[0] == ["config", "a", "b", "seed", "1", "2"] and said[1][-2:] == ["875", "–"]
        canvases = page.locator("#maps canvas").evaluate_all("all => all.map(a => a.clientWidth)")
        assert abs(canvases[0] - 2 * canvases[1]) <= 1
