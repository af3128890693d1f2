"""What the command does besides runs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pipeline.home import ROOT
from pipeline.runner import doctor, versions


def test_the_version_is_that_of_the_project() -> None:
    command = [sys.executable, str(ROOT / "run.py"), "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said == f"Thimble {versions.own()}\n" != "Thimble \n"


@pytest.mark.ci
def test_the_doctor_says_what_is_missing_and_what_mends_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert doctor.run() == 1
    said = capsys.readouterr().out
    assert (
        "arduino, arduino_mega, arduino_sd\n  found    nothing\n  missing  avr-gcc is not" in said
    )
    assert "           sudo apt-get install gcc-avr avr-libc binutils-avr\n" in said
    assert said.count("qemu-system-arm is not installed") == 1, "boards that are alike, together"
