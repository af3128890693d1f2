"""Memory over modelled latency, drawn: a panel for each network."""

from __future__ import annotations

from typing import Any

import yaml

from pipeline.home import ROOT
from pipeline.report import figures
from pipeline.report.frontier import figure

EXPERIMENT = yaml.safe_load((ROOT / "conf" / "experiment" / "frontier.yaml").read_text())
SPEC: dict[str, Any] = EXPERIMENT["figure"]


def job(model: str, strategy: str, us: float = 2e4, **more: Any) -> dict[str, Any]:
    found = {"model": model, "strategy": strategy, "pmu_bytes": 9_000.0, **more}
    return found | ({"modelled_us": us} if us else {})


LIMITED = job(
    "ds_cnn_s", "joint", 1e4, set={"strategy.objective": "latency"}, pmu_bytes=12_000.0
)  # fmt: skip
AGAIN = job("ds_cnn_s", "joint", 3e4, set={"strategy.extra_macs": 0.1}, pmu_bytes=5_000.0)
UNPLANNED = job("ds_cnn_s", "joint", 0.0, set={"strategy.extra_macs": 9.0}, status="infeasible")
STREAMED = ["model=res15", "model.width=2", "hardware.streams_input=True"]
JOBS = [
    job("ds_cnn_s", "ordinary"), job("ds_cnn_s", "joint"), LIMITED, AGAIN, UNPLANNED,
    job("res15", "joint") | {"overrides": STREAMED}, job("vgg16", "swap", us=0.0),
]  # fmt: skip


def test_each_network_has_a_panel_with_its_presets_and_published_lines() -> None:
    drawn = figure(SPEC, JOBS)
    assert drawn is not None
    first, second = drawn.axes
    labels = [text.get_text() for text in drawn.legends[0].get_texts()]
    assert labels == ["ordinary", "joint", "joint, repeated work"]
    joint = next(line for line in first.lines if line.get_label() == "joint")
    assert joint.get_xydata().tolist() == [[9_000.0, 20.0], [12_000.0, 10.0]]
    assert first.get_ylim()[0] == 0 and second.get_title("left") == "res15 model.width=2"
    assert first.xaxis.get_major_formatter()(12_000) == "12,000"
    assert [line.get_label() for line in second.lines][:1] == ["joint, streamed"]
    said = [text.get_text() for text in first.texts]
    assert said == ["TFLM, tensors", "TFLM, arena"]
    assert [text.get_text() for text in second.texts] == ["Pex, tensors, sums of 8 bits"]


def test_it_is_a_figure_of_the_experiment_and_byte_stable() -> None:
    picture = figures.png(SPEC, JOBS)
    assert picture and picture.startswith(b"\x89PNG") and picture == figures.png(SPEC, JOBS)
    assert figures.png(SPEC, [job("vgg16", "swap", us=0.0)]) is None


def test_published_figures_say_what_they_count_and_where_they_are_from() -> None:
    jobs = EXPERIMENT["hydra"]["sweeper"]["jobs"]
    models = {line.split()[0].removeprefix("model=") for line in jobs}
    assert len(models) == 5 and len(jobs) == 25
    for each in SPEC["published"]:
        assert each["model"] in models and each["bytes"] > 0
        assert each["name"] and each["counts"] and each["source"]
