import io
import re

import pytest

from pipeline.training.paper_progress import Steps


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_some_lines_a_phase(capsys: pytest.CaptureFixture[str]) -> None:
    steps = Steps()
    for step in range(1, 101):
        steps.done("float", step, 100, f"loss {step}")
    found = re.findall(r"min  float (\d+)/100: loss (\d+)\n", capsys.readouterr().err)
    assert found == [(str(step), str(step)) for step in (1, *range(10, 101, 10))]


def test_every_step_of_a_short_phase(capsys: pytest.CaptureFixture[str]) -> None:
    for step in (1, 2, 3):
        Steps().done("images", step, 3, "")
    assert capsys.readouterr().err.count("\n") == 3


def test_one_line_that_changes_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    for step in range(1, 31):
        Steps().done("float", step, 30, "loss")
    assert screen.getvalue().count("\r") == 30
    assert screen.getvalue().count("\n") == 1 and screen.getvalue().endswith("30/30: loss\n")


def test_minutes_since_it_began(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps(begin=100.0)
    monkeypatch.setattr("time.monotonic", lambda: 190.0)
    steps.done("teacher", 1, 1, "")
    assert capsys.readouterr().err.startswith("   1.5 min  teacher 1/1")
