"""The loop of a phase, and what trainings say of how far they are."""

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rich.console import Console
from torch import Tensor, nn

from pipeline.errors import ThimbleError
from pipeline.training import progress
from pipeline.training.checkpoint import Checkpoint
from pipeline.training.environment import Run
from pipeline.training.float_only import SgdPhase
from pipeline.training.loop import Phase, Row, to_csv
from pipeline.training.paper_progress import Steps
from pipeline.training.progress import Reporter, reporting
from tests.programs import refusal

PHASE = Phase("float", first=3, epochs=5, learning_rate=0.1, batch=8)


class Killed(Exception):
    pass


class Quiet(Reporter):
    """Says nothing; ``kill_after`` epochs of this process it dies."""

    def __init__(self, kill_after: int = 99) -> None:
        super().__init__(99)
        self.left = kill_after

    def epoch(self, done: int, phase: str, accuracy: float) -> None:
        self.left -= 1
        if not self.left:
            raise Killed


def batches(epoch: int) -> tuple[Tensor, Tensor]:
    """Points of the plane, labelled by the side of a line; different ones each epoch."""
    points = torch.randn(60, 2, generator=Run(0).generator(epoch))
    return points, (points.sum(1) > 0.3).long()


VALIDATION = batches(1000)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 2))


def train(
    folder: Path | None, kill_after: int = 99, phase: Phase = PHASE
) -> tuple[nn.Module, list[Row]]:
    net = network()
    checkpoint = Checkpoint(folder, "test")
    return net, phase.run(net, batches, VALIDATION, checkpoint, Quiet(kill_after))


def same(a: nn.Module, b: nn.Module) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))


def test_it_learns_and_keeps_the_best_epoch() -> None:
    _, rows = train(None)
    assert [row.epoch for row in rows] == [4, 5, 6, 7, 8]
    assert rows[-1].loss < rows[0].loss
    assert max(row.validation_accuracy for row in rows) > 0.9
    wild = Phase("float", 0, 6, 30.0, 8)
    net, rows = train(None, phase=wild)
    best = max(row.validation_accuracy for row in rows)
    right = (net(VALIDATION[0]).argmax(1) == VALIDATION[1]).float().mean()
    assert float(right) == pytest.approx(best)
    assert rows[-1].validation_accuracy <= best


@pytest.mark.parametrize("epochs_done", [1, 2, 4, 5])
def test_killed_and_resumed_is_the_same_as_undisturbed(tmp_path: Path, epochs_done: int) -> None:
    expected, expected_rows = train(None)
    with pytest.raises(Killed):
        train(tmp_path, kill_after=epochs_done)
    for kill_after in (99, 1):  # once finished it is not trained again: it would die
        resumed, rows = train(tmp_path, kill_after)
        assert same(resumed, expected) and rows == expected_rows


def test_frozen_parameters_stay() -> None:
    net = network()
    first = next(net.parameters())
    first.requires_grad_(False)
    before = first.clone()
    PHASE.run(net, batches, VALIDATION, Checkpoint(None, ""), Quiet())
    assert torch.equal(first, before)
    assert not same(net, network())
    net, rows = train(None, phase=Phase("float", 0, 2, 0.1, 1000))  # larger than the set
    assert len(rows) == 2 and not same(net, network())


def test_the_rate_rises_and_falls_once_and_the_table_has_no_times() -> None:
    rates = [PHASE.rate(share / 100) for share in range(101)]
    assert rates[0] == pytest.approx(0) and rates[100] == pytest.approx(0)
    assert max(rates) == rates[20] == pytest.approx(0.1)
    assert rates[:21] == sorted(rates[:21])
    assert rates[20:] == sorted(rates[20:], reverse=True)
    table = to_csv([Row(1, "float", 0.5, 0.25), Row(2, "frozen", 1 / 3, 1)])
    assert table == (
        "epoch,phase,loss,validation_accuracy\n"
        "1,float,0.500000,0.250000\n"
        "2,frozen,0.333333,1.000000\n"
    )


def diverging(rate: float, phase: str = "float") -> str:
    return refusal(lambda: train(None, phase=replace(PHASE, name=phase, learning_rate=rate)))


def test_a_loss_that_diverges_is_an_error(tmp_path: Path) -> None:
    """No checkpoint keeps what was ruined, nor passes it off as finished."""
    said = diverging(1e30)
    assert "training diverged in epoch 1 of 5 (float): the loss is " in said
    assert said.endswith("at a learning rate of up to 1e+30; lower train.float_rate")
    assert diverging(1e30, "frozen").endswith("lower train.frozen_rate")
    assert diverging(1e30, "tune").endswith("lower prune.rate")
    sgd = SgdPhase("float", 0, 5, 1e30, 8, 0.9, 0.0)
    with pytest.raises(ThimbleError, match=r"lower train\.rate$"):
        train(None, phase=sgd)
    for _ in range(2):
        with pytest.raises(ThimbleError, match="diverged in epoch 1"):
            train(tmp_path, phase=replace(PHASE, learning_rate=1e30))
    assert not list(tmp_path.iterdir())


def test_weights_that_a_last_step_ruins_are_an_error() -> None:
    """The epoch's mean loss was still a number."""

    class Ruined(Phase):
        def epoch(self, network: nn.Module, *others: object) -> float:
            next(network.parameters()).data[0] = torch.nan
            return 0.5

    with pytest.raises(ThimbleError, match=r"epoch 1 of 2 \(float\): the loss is 0\.5 at"):
        train(None, phase=Ruined("float", 0, 2, 0.1, 8))


def test_few_lines_and_a_bar_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Print all of few epochs."""
    for epochs, shown in ((100, 11), (3, 3)):
        with reporting(epochs) as reporter:
            for done in range(1, epochs + 1):
                reporter.epoch(done, "float", 0.9)
        captured = capsys.readouterr()
        lines = captured.err.splitlines()
        assert captured.out == "" and len(lines) == shown
        assert lines[0] == f"epoch 1/{epochs}, float: validation accuracy 90.00%"
        assert lines[-1].startswith(f"epoch {epochs}/{epochs}")
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120)
    monkeypatch.setattr(progress, "Console", lambda stderr: console)
    with reporting(2) as reporter:
        reporter.epoch(1, "float", 0.5)
        reporter.epoch(2, "frozen", 0.75)
    assert "2/2" in screen.getvalue() and "validation accuracy 75.00%" in screen.getvalue()


def test_steps_of_trials_are_some_lines_a_phase(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Print all of a short one, with the minutes since it began; a terminal's line changes."""
    steps = Steps()
    for step in range(1, 101):
        steps.done("float", step, 100, f"loss {step}")
    found = re.findall(r"min  float (\d+)/100: loss (\d+)\n", capsys.readouterr().err)
    assert found == [(str(step), str(step)) for step in (1, *range(10, 101, 10))]
    steps = Steps(begin=100.0)
    monkeypatch.setattr("time.monotonic", lambda: 190.0)
    for step in (1, 2, 3):
        steps.done("images", step, 3, "")
    said = capsys.readouterr().err
    assert said.count("\n") == 3 and said.startswith("   1.5 min  images 1/3")
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", screen)
    for step in range(1, 31):
        Steps().done("float", step, 30, "loss")
    assert screen.getvalue().count("\r") == 30
    assert screen.getvalue().count("\n") == 1 and screen.getvalue().endswith("30/30: loss\n")
