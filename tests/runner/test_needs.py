"""What is not installed is said before the first stage; versions, and what the doctor finds."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import ThimbleError
from pipeline.home import ROOT
from pipeline.runner import doctor, needs, schema, versions
from tests.runner.project import Project
from tests.runner.test_mistakes import one_line


@functools.cache
def composed(*words: str) -> dict[str, Any]:
    return schema.plain(schema.composed(*words))


@pytest.fixture
def lacking(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The programs and headers that are not there; all others are."""
    gone: set[str] = set()
    monkeypatch.setattr(shutil, "which", lambda name: None if name in gone else f"/bin/{name}")
    monkeypatch.setattr(needs, "_includes", lambda program, header: header not in gone)
    return gone


NUCLEO = ("hardware=nucleo_l4r5zi", "model=resnet8")
CASES = [
    ((), "avr-gcc", "avr-gcc is not installed (builds for Arduino Uno (ATmega328P, 16 MHz)): sudo "
     "apt-get install gcc-avr avr-libc binutils-avr; until=generate does without"),
    ((), "avr-objdump", "avr-objdump is not installed"),
    ((), "avr/io.h", "avr-gcc does not find avr/io.h (builds for Arduino Uno ("),
    ((), "cc", "cc is not installed (builds the native program): sudo apt-get install gcc"),
    ((), "simavr/sim_avr.h", "cc does not find simavr/sim_avr.h (runs AVR firmware): sudo apt-get "
     "install libsimavr-dev libelf-dev; target=host does without"),
    ((), "libelf.h", "cc does not find libelf.h (runs AVR firmware)"),
    (NUCLEO, "arm-none-eabi-gcc", "arm-none-eabi-gcc is not installed (builds for NUCLEO-L4R5ZI"),
    (NUCLEO, "string.h", "arm-none-eabi-gcc does not find string.h"),
    (NUCLEO, "qemu-system-arm", "qemu-system-arm is not installed (runs Cortex-M firmware): sudo "
     "apt-get install qemu-system-arm; target=host does without"),
    (("hardware=host", "model=resnet8"), "objdump", "objdump is not installed (builds for"),
    (("train=paper",), "gcc", "gcc is not installed (compiles the loops of train=paper)"),
    (("train=paper", "until=train"), "gcc", "train=quick does without"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "gone", "said"), CASES)
def test_what_is_missing_is_named(
    lacking: set[str], words: tuple[str, ...], gone: str, said: str
) -> None:
    needs.check(composed(*words))
    lacking.add(gone)
    with pytest.raises(ThimbleError) as raised:
        needs.check(composed(*words))
    assert said in str(raised.value)


ALL = {"avr-gcc", "cc", "avr/io.h", "simavr/sim_avr.h", "libelf.h", "gcc"}


@pytest.mark.parametrize(
    ("words", "gone"),
    [
        (("train=quick", "until=generate"), ALL),
        (("until=build",), {"simavr/sim_avr.h", "libelf.h"}),
        (("target=host",), {"simavr/sim_avr.h", "libelf.h", "qemu-system-arm"}),
        ((), {"qemu-system-arm", "arm-none-eabi-gcc"}),
        ((*NUCLEO, "until=build"), {"qemu-system-arm", "avr-gcc"}),
        (NUCLEO, {"avr-gcc", "avr/io.h", "simavr/sim_avr.h"}),
        (("train=paper", "until=fetch"), {"gcc"}),
    ],
)
def test_what_is_not_needed_is_not_missed(
    lacking: set[str], words: tuple[str, ...], gone: set[str]
) -> None:
    lacking |= gone
    needs.check(composed(*words))


@pytest.mark.ci
def test_before_the_first_stage(project: Project, tmp_path: Path) -> None:
    """A whole command, in a PATH with no compiler."""
    project.env["PATH"] = str(tmp_path / "empty")
    said = one_line(project.run())
    assert said.startswith("avr-gcc is not installed (builds for a board): ")
    assert not project.ran() and not (project.root / "outputs").exists()
    sweep = project.run("-m", "output=json", "seed=1,2")
    assert sweep.code == 1 and sweep.json["error"] == said and not project.ran()
    assert project.run("until=schedule").code == 0


@pytest.mark.parametrize(
    ("program", "header"),
    [("avr-gcc", "avr/io.h"), ("cc", "libelf.h"), ("arm-none-eabi-gcc", "string.h")],
)
def test_headers_are_looked_for_by_the_compiler(program: str, header: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    assert needs._includes(program, header)
    assert not needs._includes(program, "no/such.h")


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
    command = [sys.executable, str(ROOT / "run.py"), "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said == f"Thimble {versions.own()}\n" != "Thimble \n"
