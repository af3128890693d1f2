"""Figures of experiments: memory over latency, repeated seeds, a search for networks."""

from __future__ import annotations

from typing import Any

import yaml

from pipeline.home import ROOT
from pipeline.report import architectures, figures, frontier, repeats, seeds

EXPERIMENT = yaml.safe_load((ROOT / "conf" / "experiment" / "frontier.yaml").read_text())
SPEC: dict[str, Any] = EXPERIMENT["figure"]


def drawn(picture: bytes | None) -> bytes:
    assert picture and picture.startswith(b"\x89PNG")
    return picture


def job(model: str, strategy: str, us: float = 2e4, **more: Any) -> dict[str, Any]:
    found = {"model": model, "strategy": strategy, "pmu_bytes": 9_000.0, **more}
    return found | ({"modelled_us": us} if us else {})


QUICK = {"set": {"strategy.objective": "latency"}, "pmu_bytes": 12_000.0}
LIMITED = job("ds_cnn_s", "joint", 1e4, **QUICK)
AGAIN = job("ds_cnn_s", "joint", 3e4, set={"strategy.extra_macs": 0.1}, pmu_bytes=5_000.0)
UNPLANNED = job("ds_cnn_s", "joint", 0.0, set={"strategy.extra_macs": 9.0}, status="infeasible")
STREAMED = ["model=res15", "model.width=2", "hardware.streams_input=True"]
JOBS = [
    job("ds_cnn_s", "ordinary"), job("ds_cnn_s", "joint"), LIMITED, AGAIN, UNPLANNED,
    job("res15", "joint") | {"overrides": STREAMED}, job("vgg16", "swap", us=0.0),
]  # fmt: skip


def test_each_network_has_a_panel_with_its_presets_and_published_lines() -> None:
    found = frontier.figure(SPEC, JOBS)
    assert found is not None
    first, second = found.axes
    labels = [text.get_text() for text in found.legends[0].get_texts()]
    assert labels == ["ordinary", "joint", "joint, repeated work"]
    joint = next(line for line in first.lines if line.get_label() == "joint")
    assert joint.get_xydata().tolist() == [[9_000.0, 20.0], [12_000.0, 10.0]]
    assert first.get_ylim()[0] == 0 and second.get_title("left") == "res15 model.width=2"
    assert first.xaxis.get_major_formatter()(12_000) == "12,000"
    assert [line.get_label() for line in second.lines][:1] == ["joint, streamed"]
    assert [text.get_text() for text in first.texts] == ["TFLM, tensors", "TFLM, arena"]
    assert [text.get_text() for text in second.texts] == ["Pex, tensors, sums of 8 bits"]
    assert drawn(figures.png(SPEC, JOBS)) == figures.png(SPEC, JOBS)
    assert figures.png(SPEC, [job("vgg16", "swap", us=0.0)]) is None


def test_published_figures_say_what_they_count_and_where_they_are_from() -> None:
    jobs = EXPERIMENT["hydra"]["sweeper"]["jobs"]
    models = {line.split()[0].removeprefix("model=") for line in jobs}
    assert len(models) == 5 and len(jobs) == 25
    for each in SPEC["published"]:
        assert each["model"] in models and each["bytes"] > 0
        assert each["name"] and each["counts"] and each["source"]


SEEDS = {"each": "seeds", "colors": "prune", "marks": "strategy", "title": "Seeds"}


def seeded(strategy: str, prune: str, seed: int, bytes_: float, right: float, **more: Any) -> Any:
    words = [f"strategy={strategy}", f"prune={prune}", f"seed={seed}"]
    found = {"overrides": words, "status": "ok", "pmu_bytes": bytes_, "accuracy_int": right}
    return {**found, **more}


REPEATED = [
    seeded("joint", "pex", 1, 4000, 0.80), seeded("joint", "pex", 2, 4200, 0.82),
    seeded("joint", "pex", 3, 9999, 0.99, status="infeasible"),
    seeded("joint", "width", 1, 4000, 0.70), seeded("joint", "width", 2, 4000, 0.74),
    seeded("partial", "pex", 1, 8000, 0.84, sram_bytes=9000),
    seeded("partial", "pex", 2, 8000, 0.86),
]  # fmt: skip


def test_averages_of_what_ended() -> None:
    first, _, last = repeats.rows(REPEATED)
    assert first["strategy"] == "joint" and (first["seeds"], first["tried"]) == (2, 3)
    assert (first["accuracy_int_least"], first["accuracy_int_most"]) == (0.80, 0.82)
    assert abs(first["accuracy_int_mean"] - 0.81) < 1e-9 and first["pmu_bytes_mean"] == 4100
    assert "seed" not in first and "sram_bytes_mean" not in last  # one of them has none
    apart = [REPEATED[0], REPEATED[3], REPEATED[5]]
    assert repeats.rows(apart) == repeats.rows([]) == [] and seeds.figure(SEEDS, apart) is None


def test_a_point_for_each_with_its_spread() -> None:
    found = seeds.figure(SEEDS, REPEATED)
    assert found is not None
    (axes,) = found.axes
    _, names = axes.get_legend_handles_labels()
    assert names == ["pex, joint", "width, joint", "pex, partial"]
    (middle, *_), bars = axes.containers[0].lines[0].get_xydata(), axes.containers[0].lines[2]
    assert middle.tolist() == [4100.0, 81.0]
    assert bars[1].get_segments()[0][:, 1].round(6).tolist() == [80.0, 82.0]
    assert axes.containers[0].lines[0].get_color() == axes.containers[2].lines[0].get_color()
    assert drawn(figures.png(SEEDS, REPEATED)) == figures.png(SEEDS, REPEATED)


def network(sizes: dict[str, float], *rungs: float, survives: bool = False) -> dict[str, Any]:
    return {"overrides": [], "bytes": sizes, "rungs": list(rungs), "survives": survives}


SEARCH = {
    "strategies": ["ordinary", "herringbone"],
    "networks": [
        network({"ordinary": 500, "herringbone": 400}, 0.5, 0.9, survives=True),
        network({"herringbone": 300}, 0.4),
        network({"herringbone": 450}, 0.6),
        network({"herringbone": 350}, -1.0),
        network({}),
    ],
}


def test_a_point_for_each_trained_network_and_strategy_that_fits() -> None:
    """Survivors are filled, what is unbeaten is joined."""
    found = architectures.figure(SEARCH)
    assert found is not None
    (axes,) = found.axes
    ordinary, herringbone = axes.collections
    assert [[round(v, 6) for v in at] for at in ordinary.get_offsets().tolist()] == [[500, 10]]
    assert [x for x, _ in herringbone.get_offsets().tolist()] == [400, 300, 450]
    assert [len(each.get_facecolor()) for each in (ordinary, herringbone)] == [1, 3]
    assert (herringbone.get_facecolor()[:, 3] > 0).tolist() == [True, False, False]
    assert axes.get_title("left").startswith("5 networks drawn, 1 fit with no strategy, 1 survived")
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == SEARCH["strategies"]
    line = next(line for line in axes.lines if line.get_label() == "herringbone")
    assert [x for x, _ in line.get_xydata().tolist()] == [300, 400]
    unbeaten = architectures.unbeaten([(5, 1.0), (3, 2.0), (4, 2.0), (6, 1.5)])
    assert unbeaten == [(3, 2.0), (5, 1.0)] and architectures.unbeaten([]) == []
    assert drawn(architectures.png(SEARCH)) == architectures.png(SEARCH)
    nothing = [network({}), network({"ordinary": 1})]
    assert architectures.png({"strategies": ["ordinary"], "networks": nothing}) is None
