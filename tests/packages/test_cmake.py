"""The package for CMake is configured, built and run, natively and in QEMU. Of PlatformIO's the
sketch compiles with Debian's Arduino core: its own tools fetch compilers from its registry."""

from __future__ import annotations

import configparser
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.packages import boards, cmake, platformio
from pipeline.packages.library import Library
from pipeline.pruning import stored
from pipeline.pruning.width import Width
from pipeline.quantize.int8 import Int8
from pipeline.targets.machines import machine
from pipeline.training.environment import Run
from tests.codegen.int8.configurations import network
from tests.packages.arduino_core import needs_core, sketch
from tests.packages.conftest import made
from tests.pruning.networks import DATA, MODEL, weights
from tests.strategies.chains import mnist
from tests.targets.conftest import needs_avr
from tests.targets.cortex_m import board_named, needs_arm
from tests.tiers import quick

needs_cmake = pytest.mark.skipif(
    shutil.which("cmake") is None, reason="cmake is not installed: sudo apt-get install cmake"
)


def built(found: Library, folder: Path, *options: str) -> Path:
    cmake.package(found).write(folder)
    for command in (
        ["cmake", "-S", "digits", "-B", "build", *options],
        ["cmake", "--build", "build"],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "build" / "libdigits.a").is_file()
    return folder / "build" / "example"


def expected(graph: Graph) -> list[int]:
    """Of the image that the example makes."""
    tensor = graph.tensors[graph.input]
    image = (7 * np.arange(tensor.size) % 256).astype(np.uint8).view(tensor.dtype.stored)
    given = image.astype(np.int64).reshape(1, *tensor.shape)
    return [int(n) for n in graph.outputs(given).reshape(-1)]


def pruned() -> Graph:
    """Of 8 bits, with squeeze-and-excite, half of its channels left."""
    small = Width(width=0.5, epochs=0).prune(MODEL, weights(), DATA, Run(1))
    return Int8(images=4).from_float(stored.from_arrays(small.weights), DATA)


@needs_cmake
@pytest.mark.parametrize("kind", quick(["bytes"], ["bytes", "nibbles", "pruned"]))
def test_native_example(kind: str, tmp_path: Path) -> None:
    graphs = {"bytes": network, "nibbles": lambda: mnist().graph(), "pruned": pruned}
    graph = graphs[kind]()
    program = built(made(board_named("host"), "-O2", graph, prefix="kws"), tmp_path)
    said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    assert [int(line) for line in said.split()] == expected(graph)


@needs_cmake
@needs_arm
@pytest.mark.parametrize("board", quick(1, ["nucleo_l4r5zi", "nucleo_g0b1re", "nucleo_f767zi"]))
def test_example_in_qemu(board: str, tmp_path: Path) -> None:
    graph, hardware = network(), board_named(board)
    toolchain = "-DCMAKE_TOOLCHAIN_FILE=cmake/toolchain.cmake"
    program = built(made(hardware, "-O2", graph), tmp_path, toolchain)
    command = ["qemu-system-arm", "-M", machine(hardware).name, "-nographic", "-semihosting"]
    done = subprocess.run(
        [*command, "-kernel", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done
    assert [int(line) for line in (done.stdout + done.stderr).split()] == expected(graph)


@needs_cmake
@needs_avr
def test_library_for_an_avr(in_flash: Library, tmp_path: Path) -> None:
    """No example: there is no line to say anything on."""
    toolchain = "-DCMAKE_TOOLCHAIN_FILE=cmake/toolchain.cmake"
    assert not built(in_flash, tmp_path, toolchain).exists()


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
