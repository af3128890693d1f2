"""A schedule is proved and tried before it is believed; what does not fit says by how much."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline import verdict
from pipeline.errors import ThimbleError
from tests.boards import load_hardware
from tests.strategies import nets
from tests.strategies.chains import STRATEGIES, Herringbone, Ordinary, board, mnist

GRAPH = mnist().graph()
NUCLEO = load_hardware("nucleo_l4r5zi")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_reports(strategy: type[Herringbone]) -> None:
    uno = board(sram_bytes=2048)
    report = verdict.check(strategy().plan(GRAPH, uno), GRAPH, uno)
    assert report["macs"] == report["macs_executed"] == 94928
    assert report["arena_bytes"] >= report["pmu_bytes"]
    assert report["weight_bytes"] == 1512.5
    assert report["status"] == ("infeasible" if strategy is Ordinary else "ok")


def test_what_a_network_needs_and_by_how_much_it_is_too_large() -> None:
    tiny = board(sram_bytes=1024)
    report = verdict.check(Herringbone().plan(GRAPH, tiny), GRAPH, tiny)
    assert report["status"] == "infeasible" and report["resource"] == "SRAM"
    assert report["needed_bytes"] > 1512.5 + 430 and report["available_bytes"] == 1024
    assert report["where"] == "weights 1,512.5 B + activations 430.5 B at their peak in conv2"
    assert report["advice"].startswith("try hardware.weights_in=flash, strategy=auto")
    graph = nets.ds_cnn((64,) * 5)
    report = verdict.check(Ordinary().plan(graph, NUCLEO), graph, NUCLEO)
    assert report["status"] == "ok"
    scratch = 512  # of the fast convolution, beside the activations
    assert (report["pmu_bytes"], report["arena_bytes"], report["arena_over_bound_bytes"]) == (
        *(16_000, 16_000 + scratch, 0),
    )
    assert report["order_proved"] is True and report["arena_proved"] is True
    assert report["needed_bytes"] == 16_000 + scratch + NUCLEO.stack_reserve_bytes
    assert report["available_bytes"] == 640 * 1024
    assert [each["name"] for each in report["memories"]] == ["sram", "flash"]
    assert report["memories"][0]["needed_bytes"] == report["needed_bytes"]
    assert report["memories"][1]["needed_bytes"] >= graph.weight_bytes
    graph = nets.mobilenet_v2(160)  # too large for it
    report = verdict.check(Ordinary().plan(graph, NUCLEO), graph, NUCLEO)
    assert report["status"] == "infeasible" and report["pmu_bytes"] == 768_000
    assert report["needed_bytes"] == 768_000 + NUCLEO.stack_reserve_bytes
    assert report["resource"] == "SRAM" and "conv2d" in report["where"]


def test_a_wrong_plan_and_an_interpreter_that_disagrees_are_errors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    uno = board()
    plan = Herringbone().plan(GRAPH, uno)
    (track,) = plan.tracks
    with pytest.raises(ThimbleError):
        verdict.check(replace(plan, tracks=(replace(track, steps=track.steps[:-1]),)), GRAPH, uno)

    monkeypatch.setattr(verdict, "sequence", lambda *given: [np.full(10, 7)] * len(given[2]))
    with pytest.raises(ThimbleError, match=r"strategy herringbone.*: frame 0 gives"):
        verdict.check(plan, GRAPH, uno)


def test_frames_reach_both_ends_of_the_input() -> None:
    frames = list(verdict.frames(GRAPH))
    assert frames[0].max() == 0 and frames[1].min() == 255 and len(frames) == 4
    assert all(frame.shape == (28, 28, 1) for frame in frames)
    (frame,) = verdict.frames(nets.mobilenet_v2(80))  # a large network is tried on one
    assert frame.min() < -100 and frame.max() > 100


def test_an_error_is_one_line_whatever_is_named_in_it() -> None:
    assert str(ThimbleError("Upsample: mode n\nst\r\n: nearest")) == "Upsample: mode n st : nearest"
