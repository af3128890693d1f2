"""Packages of a small network, and an Arduino Uno that is simulated with its serial line."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipeline.codegen.options import Options
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.packages.library import Library, library
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets import simavr
from tests.packages.arduino_core import compile_core
from tests.strategies.chains import mnist
from tests.targets.conftest import load_hardware

PIECE = "32"
"""Bytes that the sketch asks for at a time."""
BOARD = Path(__file__).parent / "board.c"


def made(
    hardware: Hardware, level: str = "-Os", graph: Graph | None = None, **options: object
) -> Library:
    """``graph``, or the network of 2 KB, as a library for ``hardware``."""
    found = graph or mnist().graph()
    strategy = Herringbone("slots") if hardware.core == "avr" else Ordinary()
    plan = strategy.plan(found, hardware)
    chosen = Options(**options)  # type: ignore[arg-type]
    return library(found, plan, hardware, {"graph": found.hash}, chosen, "digits", "1.2.3", level)


@pytest.fixture(scope="session")
def in_flash() -> Library:
    return made(load_hardware(weights_in="flash"), prefix="kws", labels=LABELS)


@pytest.fixture(scope="session")
def in_sram() -> Library:
    return made(load_hardware(weights_in="sram"))


LABELS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", 'a "9"')


@pytest.fixture(scope="session")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_core(tmp_path_factory.mktemp("core"))


@dataclass(frozen=True)
class Uno:
    program: Path

    def __call__(self, elf: Path, line: bytes, image: int, lines: int) -> tuple[str, int]:
        """What the sketch said to ``line``, images of so many bytes, and how deep its stack was."""
        command = [self.program, elf, PIECE, str(image), str(lines)]
        done = subprocess.run(command, input=line, capture_output=True, check=False)
        assert done.returncode == 0, (done.returncode, done.stdout[-300:])
        said = done.stdout.decode().replace("\r", "").splitlines()
        heard = [text for text in said if not text.startswith("Loaded ")]  # simavr's own
        last = heard.pop()
        return "\n".join(heard) + last.rstrip("0123456789"), 0x8FF - int(last.lstrip("L"))


@pytest.fixture(scope="session")
def uno(tmp_path_factory: pytest.TempPathFactory) -> Uno:
    folder = tmp_path_factory.mktemp("uno")
    try:
        simavr.compile_shim(folder)
    except ThimbleError as error:
        pytest.skip(str(error))
    command = ["cc", "-O2", "-std=gnu99", "-w", str(BOARD), "-lsimavr", "-lelf", "-o", "uno"]
    subprocess.run(command, cwd=folder, check=True)
    return Uno(folder / "uno")
