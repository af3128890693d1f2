from pathlib import Path

import pytest

from pipeline.runner.table import picture


def test_a_picture_is_written(tmp_path: Path) -> None:
    file = tmp_path / "figure.png"
    assert picture(file, lambda: b"png") == [file] and file.read_bytes() == b"png"


def test_nothing_to_draw_is_no_file(tmp_path: Path) -> None:
    assert picture(tmp_path / "figure.png", lambda: None) == []
    assert not list(tmp_path.iterdir())


def test_a_picture_that_fails_is_said_and_costs_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def draw() -> bytes:
        raise ValueError("no finite limits")

    assert picture(tmp_path / "figure.png", draw) == []
    said = capsys.readouterr()
    assert said.err == "figure.png could not be drawn: no finite limits\n" and not said.out
