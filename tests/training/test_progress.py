"""What trainings say of how far they are."""

import io
import re

import pytest
from rich.console import Console

from pipeline.training import progress
from pipeline.training.paper_progress import Steps
from pipeline.training.progress import reporting


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_few_lines_and_a_bar_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of few epochs, all."""
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
    """Of a short one all, with the minutes since it began; on a terminal a line that changes."""
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
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    for step in range(1, 31):
        Steps().done("float", step, 30, "loss")
    assert screen.getvalue().count("\r") == 30
    assert screen.getvalue().count("\n") == 1 and screen.getvalue().endswith("30/30: loss\n")
