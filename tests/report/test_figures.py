"""Figures of experiments and of sweeps."""

import io
from itertools import product
from typing import Any
from unittest.mock import Mock

import matplotlib.image
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from pipeline.home import ROOT
from pipeline.plan.profile import profile
from pipeline.report import architectures, figures, frontier, repeats, seeds
from pipeline.report.pareto import NAMED, axes_of, unbeaten
from pipeline.report.pareto import png as pareto
from pipeline.report.profile import MOST_NAMES
from pipeline.report.profile import png as profiles
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from tests.strategies import nets
from tests.strategies.test_ordinary import BOARD

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


def test_memory_stands_over_repeated_work() -> None:
    published = {"model": "res8", "name": "A", "bytes": 7_000, "counts": "all", "pct": 68}
    mine = job("res8", "joint") | {"macs": 100, "macs_executed": 110}
    found = frontier.figure({"work": True, "published": [published]}, [mine])
    assert found is not None and found.axes[0].get_ylim()[1] == pytest.approx(1.35 * 68)
    points = [line.get_xydata().tolist()[0] for line in found.axes[0].lines[:2]]
    assert points == [[9_000.0, pytest.approx(10.0)], [7_000.0, 68.0]]


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


def test_averages_of_what_ended_are_points_with_their_spread() -> None:
    first, _, last = repeats.rows(REPEATED)
    assert first["strategy"] == "joint" and (first["seeds"], first["tried"]) == (2, 3)
    assert (first["accuracy_int_least"], first["accuracy_int_most"]) == (0.80, 0.82)
    assert abs(first["accuracy_int_mean"] - 0.81) < 1e-9 and first["pmu_bytes_mean"] == 4100
    assert "seed" not in first and "sram_bytes_mean" not in last  # one of them has none
    apart = [REPEATED[0], REPEATED[3], REPEATED[5]]
    assert repeats.rows(apart) == repeats.rows([]) == [] and seeds.figure(SEEDS, apart) is None
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
    assert drawn(architectures.png(SEARCH)) == architectures.png(SEARCH)
    nothing = [network({}), network({"ordinary": 1})]
    assert architectures.png({"strategies": ["ordinary"], "networks": nothing}) is None


def swept(status: str = "ok", **metrics: Any) -> dict[str, Any]:
    return {"status": status, "sram_limit_bytes": 2048, **metrics}


UNFIT = swept("infeasible", pmu_bytes=760, resource="SRAM", needed_bytes=2337, available_bytes=2048)


def test_the_axes_are_metrics_that_differ() -> None:
    same = {"sram_bytes": 2000, "pmu_bytes": 430.5, "accuracy_int": 0.99}
    fast, slow = swept(**same, latency_us=5.0), swept(**same, latency_us=6.0)
    assert axes_of([fast, slow]) == ("sram_bytes", "latency_us")
    other = {**same, "pmu_bytes": 500, "accuracy_int": 0.98}
    assert axes_of([swept(**same), swept(**other), UNFIT]) == ("pmu_bytes", "accuracy_int")
    assert axes_of([swept(pmu_bytes=430.5), swept(pmu_bytes=500), UNFIT]) is None
    assert axes_of([swept(**same), swept("failed")]) is None
    for x, y in product(("sram_bytes", "pmu_bytes", "flash_bytes"), ("energy_uj", "macs_executed")):
        assert axes_of([swept(**{x: 10, y: 7}), swept(**{x: 12, y: 6}), UNFIT]) == (x, y)
    one = swept(sram_bytes=1)
    for jobs in ([one], [one, UNFIT], [one, one], [swept()] * 2, [swept("failed")] * 2, []):
        assert pareto(jobs, [str(n) for n in range(len(jobs))]) is None


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12),
    st.booleans(),
)
def test_the_front_is_what_no_other_beats(places: list[tuple[int, int]], more: bool) -> None:
    sign = -1 if more else 1

    def beats(a: tuple[int, int], b: tuple[int, int]) -> bool:
        one, other = (a[0], sign * a[1]), (b[0], sign * b[1])
        return one != other and all(p <= q for p, q in zip(one, other, strict=True))

    best = {one for one in places if not any(beats(other, one) for other in places)}
    assert unbeaten(places, more) == sorted(best)


@pytest.mark.parametrize(("count", "metric"), [(6, "latency_us"), (40, "accuracy_int")])
def test_a_sweep_is_drawn(count: int, metric: str) -> None:
    jobs = [swept(sram_bytes=1500 + 10 * n, **{metric: (n * 7 % 5 + 1) / 10}) for n in range(count)]
    names = [f"strategy={n} layout=slots" for n in range(count + 2)]
    picture = pareto([*jobs, UNFIT, swept("failed")], names)
    assert picture is not None
    image = matplotlib.image.imread(io.BytesIO(picture), format="png")
    assert image.shape[0] > 200 and image.shape[1] > 1000
    assert picture == pareto([*jobs, UNFIT, swept("failed")], names), "equal jobs, equal bytes"
    without = pareto([*jobs, swept("failed"), swept("failed")], names)
    assert (without != picture) == (count <= NAMED), "one that does not fit is named"


def test_what_does_not_fit_has_no_point(monkeypatch: pytest.MonkeyPatch) -> None:
    saved = Mock(side_effect=Figure.savefig)
    monkeypatch.setattr(Figure, "savefig", lambda *given, **options: saved(*given, **options))
    fitting = (swept(sram_bytes=10, latency_us=7), swept(sram_bytes=12, latency_us=6))
    pareto([*fitting, UNFIT], list("abc"))
    figure = saved.call_args.args[0]
    (axes,) = figure.axes
    assert sorted(x for dots in axes.collections for x in dots.get_offsets()[:, 0]) == [10, 12]
    assert axes.get_xlim()[1] < 13
    assert "2  c: does not fit" in figure.legends[0].get_title().get_text()


def test_figure_1_by_hand_and_each_operator_once() -> None:
    """13x13 pixels; 24, 144 and 144 channels, then 24 that are added to the first. Along channels
    the sums are there while the others are made, of which a channel each exists."""
    graph, pixels = nets.fig1_block(), 13 * 13
    ordinary = profile(Ordinary().plan(graph, BOARD))
    assert [name for name, _ in ordinary] == [op.name for op in graph.operators]
    assert [size / pixels for _, size in ordinary] == [24 + 144, 24 + 288, 24 + 168, 24 + 24]
    partial = profile(Partial(accumulator_bits=8, channels=1).plan(graph, BOARD))
    assert [name for name, _ in partial] == [name for name, _ in ordinary]
    assert [size / pixels for _, size in partial] == [24 + 24 + 2] * 3 + [24 + 24]
    graph = nets.ds_cnn((64,) * 5)
    for strategy in (Ordinary(), Partial(), Partial(accumulator_bits=8)):
        found = profile(strategy.plan(graph, BOARD))
        assert sorted(name for name, _ in found) == sorted(op.name for op in graph.operators)
        assert max(size for _, size in found) == 16_000


@pytest.mark.parametrize("layers", [2, 200])
def test_profiles_are_drawn(layers: int) -> None:
    order = [f"layer{n}" for n in range(layers)]
    plans = [
        (name, {layer: 1000.0 * k + n for n, layer in enumerate(order[::step])})
        for k, (name, step) in enumerate([("ordinary", 1), ("patch", 1), ("partial", -1)], 1)
    ]
    picture = profiles(plans)
    assert picture is not None and MOST_NAMES < 200
    assert matplotlib.image.imread(io.BytesIO(picture), format="png").shape[:2] == (690, 1500)
    assert profiles(plans) == picture


def test_no_profiles() -> None:
    one, other = ((name, {name: 4.0}) for name in ("conv", "dense"))
    for plans in ([one], [one, other], [one] * 9, [("a", {}), ("b", {})]):
        assert profiles(plans) is None
