import io

import pytest
from rich.console import Console

from pipeline.training import progress
from pipeline.training.progress import reporting


def test_elsewhere_a_few_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with reporting(100) as reporter:
        for done in range(1, 101):
            reporter.epoch(done, "float", 0.9)
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert captured.out == ""
    assert lines[0] == "epoch 1/100, float: validation accuracy 90.00%"
    assert lines[-1].startswith("epoch 100/100")
    assert len(lines) == 11


def test_few_epochs_are_all_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with reporting(3) as reporter:
        for done in range(1, 4):
            reporter.epoch(done, "frozen", 0.5)
    assert len(capsys.readouterr().err.splitlines()) == 3


def test_on_a_terminal_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120)
    monkeypatch.setattr(progress, "Console", lambda stderr: console)
    with reporting(2) as reporter:
        reporter.epoch(1, "float", 0.5)
        reporter.epoch(2, "frozen", 0.75)
    shown = screen.getvalue()
    assert "2/2" in shown
    assert "validation accuracy 75.00%" in shown
