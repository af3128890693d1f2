"""The Arduino library: compiled as the IDE does it, with the core's flags, and run on the chip."""

from __future__ import annotations

import re
import zipfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen.options import Options
from pipeline.errors import ThimbleError
from pipeline.packages import arduino, boards
from pipeline.packages.library import Library, library
from pipeline.packages.package import Package
from pipeline.strategies.herringbone import Herringbone
from tests.codegen.support import frames
from tests.packages.arduino_core import needs_core, sketch
from tests.packages.conftest import LABELS, Uno
from tests.strategies.chains import mnist
from tests.targets.conftest import load_hardware, needs_avr

pytestmark = needs_avr


@pytest.fixture(scope="module")
def folder(in_flash: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("library")
    arduino.package(in_flash).write(place)
    return place / "digits"


@pytest.mark.ci
@needs_core
def test_serial_classifier_answers_with_the_networks_outputs(
    folder: Path, core: Path, uno: Uno, in_flash: Library, tmp_path: Path
) -> None:
    """Six images over the line, every output of each, the class' name, and the time."""
    elf = sketch(folder, "SerialClassifier", core, tmp_path)
    graph = mnist().graph()
    given = frames(graph, 6)
    said, deep = uno(elf, given.astype(np.uint8).tobytes(), image=784, lines=1 + 2 * 6)
    first, *rest = said.splitlines()
    left = int(re.fullmatch(r"digits: (\d+) B of RAM are left for your sketch", first)[1])  # type: ignore[index]
    answers = [line for line in rest if not line.startswith(".")]
    assert len(answers) == 6
    for line, outputs in zip(answers, graph.outputs(given).reshape(6, -1), strict=True):
        found = re.fullmatch(r"((?:-?\d+ )+)(.+) (\d+) us", line)
        assert found and [int(n) for n in found[1].split()] == outputs.tolist()
        assert found[2] == LABELS[int(outputs.argmax())] and 10_000 < int(found[3]) < 60_000
    # what the sketch says and the note agree: its Serial, the core and its own stack are between
    beside = in_flash.memory.left_bytes - left
    assert arduino.CORE_BYTES + arduino.SERIAL_BYTES - 10 < beside < 250
    assert deep < in_flash.memory.stack.bytes + 80


@pytest.mark.ci
@needs_core
def test_smallest_sketch_blinks(folder: Path, core: Path, uno: Uno, tmp_path: Path) -> None:
    """As many times as the class says."""
    elf = sketch(folder, "Smallest", core, tmp_path)
    graph = mnist().graph()
    image = (np.arange(784) % 256).reshape(1, 28, 28, 1)
    times = int(graph.outputs(image).argmax()) + 1
    said, _ = uno(elf, b"", image=0, lines=times)
    assert said == "L" * times


def test_header_says_the_stack(in_flash: Library) -> None:
    header = in_flash.placed({}, {})["src/kws.h"]
    said = re.search(r"#define KWS_STACK_BYTES (\d+) /\* .*: avr-gcc [\d.]+ -Os \*/", header)
    assert said and int(said[1]) == in_flash.memory.stack.bytes and 30 < int(said[1]) < 64
    assert "KWS_STACK_BYTES of it at most" in header and "KWS_LABEL_BYTES 6 " in header


def test_layout_is_that_of_a_library(in_flash: Library) -> None:
    package = arduino.package(in_flash)
    assert {"library.properties", "src/kws.c", "src/kws.h", "extras/send.py"} <= set(package.files)
    for name in ("Smallest", "SerialClassifier"):
        assert "#include <kws.h>" in package.files[f"examples/{name}/{name}.ino"]
    pairs = [line.split("=", 1) for line in package.files["library.properties"].splitlines()]
    said = dict(pairs)
    assert said["version"] == "1.2.3" and said["includes"] == "kws.h" and said["name"] == "digits"
    compile(package.files["extras/send.py"], "send.py", "exec")
    with zipfile.ZipFile(BytesIO(package.zipped)) as archive:
        assert sorted(archive.namelist()) == sorted(f"digits/{name}" for name in package.files)
    assert package.zipped == Package(package.name, dict(reversed(package.files.items()))).zipped


@pytest.mark.ci
def test_says_what_is_left_and_what_is_missing(in_flash: Library, in_sram: Library) -> None:
    left = in_flash.memory.left_bytes
    assert 1_500 < left < 1_600
    assert arduino.note(in_flash, None).endswith(f"leaves {left:,} B for a sketch")
    said = arduino.note(in_sram, in_flash)
    assert re.match(
        r"2,0\d\d of 2,048 B: no room for Serial \(about 180 B, \d+ are missing\)", said
    )
    assert said.endswith(f"; package.weights_in=flash leaves {left:,} B")
    assert [n for n in arduino.package(in_sram).files if n.endswith(".ino")] == [
        "examples/Smallest/Smallest.ino"
    ]
    assert "extras/send.py" not in arduino.package(in_sram).files


def test_refuses_what_has_no_room_and_what_has_no_board(in_sram: Library) -> None:
    full = replace(in_sram, memory=replace(in_sram.memory, sram_limit_bytes=2000))
    missing = in_sram.memory.sram_bytes + arduino.CORE_BYTES - 2000
    with pytest.raises(ThimbleError, match=f"no room for any sketch, {missing} B are missing; try"):
        arduino.package(full)
    with pytest.raises(ThimbleError, match="hardware=host is no Arduino with an AVR; try package="):
        boards.check("arduino", "host", "host", "")
    boards.check("arduino", "arduino", "avr", "")
    boards.check("cmake", "anything", "host", "")


@pytest.mark.parametrize(
    ("name", "version", "said"),
    [("digits", "1.0", "give three numbers"), ("9", "1.0.0", "begins with a letter")],
)
def test_refuses_names_and_versions(name: str, version: str, said: str) -> None:
    graph, hardware = mnist().graph(), load_hardware()
    plan = Herringbone("slots").plan(graph, hardware)
    with pytest.raises(ThimbleError, match=said):
        library(graph, plan, hardware, {}, Options(), name, version, "-Os")
