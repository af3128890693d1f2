"""The package for PlatformIO, whose own tools are not tried here: they fetch compilers that cannot
be had without its registry. Its sketch compiles with the Arduino core of Debian."""

from __future__ import annotations

import configparser
import json
from pathlib import Path

import pytest

from pipeline.errors import ThimbleError
from pipeline.packages import boards, platformio
from pipeline.packages.library import Library
from tests.packages.arduino_core import needs_core, sketch
from tests.packages.conftest import made
from tests.targets.conftest import needs_avr
from tests.targets.cortex_m import board_named, needs_arm


@needs_avr
def test_project_for_the_uno(in_flash: Library) -> None:
    files = platformio.package(in_flash).files
    about = json.loads(files["library.json"])
    assert about["name"] == "digits" and about["headers"] == "kws.h"
    assert about["platforms"] == "atmelavr" and f"{about['build']['srcDir']}/kws.c" in files
    ini = configparser.ConfigParser()
    ini.read_string(files["project/platformio.ini"])
    assert dict(ini["env:uno"])["platform"] == "atmelavr" and "project/src/main.cpp" in files
    assert "#include <kws.h>" in files["project/src/main.cpp"]


@needs_avr
@needs_core
@pytest.mark.ci
def test_its_sketch_compiles_with_the_core(in_flash: Library, core: Path, tmp_path: Path) -> None:
    platformio.package(in_flash).write(tmp_path)
    example = tmp_path / "digits" / "examples" / "main"
    example.mkdir(parents=True)
    main = tmp_path / "digits" / "project" / "src" / "main.cpp"
    (example / "main.ino").write_text(main.read_text())
    assert sketch(tmp_path / "digits", "main", core, tmp_path / "elf").is_file()


@needs_arm
def test_project_for_a_nucleo() -> None:
    found = made(board_named("nucleo_f446re"))
    files = platformio.package(found).files
    assert "board = nucleo_f446re" in files["project/platformio.ini"]
    assert "__heap_start" not in files["project/src/main.cpp"]
    assert found.memory.stack.bytes > 0 and "NN_STACK_BYTES" in files["src/model.h"]


def test_boards_say_what_they_are_there_and_others_are_refused() -> None:
    for name in ("arduino", "arduino_mega", "nucleo_l4r5zi", "stm32f746g_disco"):
        board = board_named(name)
        boards.check("platformio", name, board.core, board.platformio)
    with pytest.raises(ThimbleError, match="hardware=host is not known to be one of its boards;"):
        boards.check("platformio", "host", "host", "")
