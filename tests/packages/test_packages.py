"""Packages: the one for CMake is configured, built and run, natively and in QEMU. Of PlatformIO's
the sketch compiles with Debian's Arduino core: its own tools fetch compilers from its registry. The
Arduino library is compiled as the IDE does it, and run on the chip. The C of the manual is
compiled, and what can be run is; Zephyr's and ST's headers are stood in for by what is used."""

import configparser
import json
import os
import re
import shutil
import subprocess
import zipfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from subprocess import PIPE

import numpy as np
import pytest
import yaml

from pipeline.codegen import generate
from pipeline.codegen.options import Options, Stack
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.home import ROOT
from pipeline.packages import arduino, boards, cmake, platformio
from pipeline.packages.library import Library, library
from pipeline.packages.package import Package
from pipeline.prefix import Prefix
from pipeline.pruning import stored
from pipeline.pruning.width import Width
from pipeline.quantize.int8 import Int8
from pipeline.strategies.in_place import Herringbone
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets.machines import machine
from pipeline.training.environment import Run
from tests.codegen.int8.support import host, network
from tests.codegen.support import WARNINGS, frames, uno, write
from tests.codegen.test_sound import WORDS, sounds
from tests.codegen.test_sound import expected as expected_of
from tests.codegen.test_sound import network as network_of
from tests.importers.test_states import recurrent
from tests.packages.conftest import LABELS, Uno, made, needs_core, sketch
from tests.programs import ran, said
from tests.pruning.networks import DATA, MODEL, weights
from tests.several import several
from tests.strategies.chains import mnist
from tests.targets.conftest import load_hardware, needs_avr
from tests.targets.cortex_m import board_named, needs_arm
from tests.tiers import quick

needs_cmake = pytest.mark.skipif(
    shutil.which("cmake") is None, reason="cmake is not installed: sudo apt-get install cmake"
)


def built(found: Library, folder: Path, *options: str) -> Path:
    cmake.package(found).write(folder)
    configure = ["cmake", "-S", "digits", "-B", "build", *options]
    for command in (configure, ["cmake", "--build", "build"]):
        said(command, folder)
    assert (folder / "build" / "libdigits.a").is_file()
    return folder / "build" / "example"


def expected(graph: Graph) -> list[int]:
    """Compute the outputs for the image that the example makes."""
    tensor = graph.tensors[graph.input]
    image = (7 * np.arange(tensor.size) % 256).astype(np.uint8).view(tensor.dtype.stored)
    given = image.astype(np.int64).reshape(1, *tensor.shape)
    return [int(n) for n in graph.evaluate(given).reshape(-1)]


def pruned() -> Graph:
    """Make a network of 8 bits, with squeeze-and-excite, half of its channels left."""
    small = Width(width=0.5, epochs=0).prune(MODEL, weights(), DATA, Run(1))
    return Int8(images=4).from_float(stored.from_arrays(small.weights), DATA)


@needs_cmake
@pytest.mark.parametrize("kind", quick(["bytes"], ["bytes", "nibbles", "pruned"]))
def test_native_example(kind: str, tmp_path: Path) -> None:
    graphs = {"bytes": network, "nibbles": lambda: mnist().graph(), "pruned": pruned}
    graph = graphs[kind]()
    program = built(made(board_named("host"), "-O2", graph, prefix="kws"), tmp_path)
    assert [int(line) for line in said([program]).split()] == expected(graph)


@needs_cmake
@pytest.mark.ci
def test_a_program_that_listens(tmp_path: Path) -> None:
    graph = network_of(WORDS)
    build = built(made(board_named("host"), "-O2", graph, frontend=WORDS), tmp_path).parent
    heard = sounds(WORDS)
    done = subprocess.run([build / "listen"], input=heard.tobytes(), stdout=PIPE, check=True)
    target = graph.tensors[graph.output]
    wanted = target.real(expected_of(graph, WORDS, heard).reshape(len(heard), -1))
    assert np.allclose(np.loadtxt(BytesIO(done.stdout)), wanted, rtol=1e-4)


@needs_cmake
@needs_arm
@pytest.mark.parametrize(
    "board", quick(0, ["nucleo_l4r5zi", "nucleo_g0b1re", "nucleo_f767zi"], ci=2)
)
def test_example_in_qemu(board: str, tmp_path: Path) -> None:
    graph, hardware = network(), board_named(board)
    toolchain = "-DCMAKE_TOOLCHAIN_FILE=cmake/toolchain.cmake"
    program = built(made(hardware, "-O2", graph), tmp_path, toolchain)
    command = ["qemu-system-arm", "-M", machine(hardware).name, "-nographic", "-semihosting"]
    done = ran([*command, "-kernel", program])
    assert done.returncode == 0, done
    assert [int(line) for line in (done.stdout + done.stderr).split()] == expected(graph)


STUBS = Path(__file__).parent / "stubs"


@needs_arm
@pytest.mark.ci
@pytest.mark.parametrize("board", ["pico", "nano33ble", "mkrzero", "teensy41", "bluepill"])
def test_sketches_compile_for_cores_other_than_an_avrs(board: str, tmp_path: Path) -> None:
    """With the board's compiler, against stubs of what they use of a core."""
    found = made(board_named(board), graph=network(), labels=("a", "b", "c"))
    boards.check("arduino", board, found.hardware.platformio)
    arduino.package(found).write(tmp_path)
    flags = [flag for flag in found.hardware.toolchain.flags if flag.startswith("-m")]
    flags += ["-Os", "-Wall", "-Wextra", "-Werror", f"-I{STUBS}", "-Isrc", "-c", "-o", "made.o"]
    sketch = ("-std=gnu++17", "-fno-exceptions", "-include", "Arduino.h", "-x", "c++")
    examples = [str(path.relative_to(tmp_path / "digits")) for path in tmp_path.rglob("*.ino")]
    assert len(examples) == 2 + (board == "nano33ble")  # with its camera
    for example in examples:
        said(["arm-none-eabi-g++", *flags, *sketch, example], tmp_path / "digits")
    said(["arm-none-eabi-gcc", *flags, "src/model.c"], tmp_path / "digits")
    assert arduino.note(found, None).endswith("B for a sketch and the Arduino core")
    if board == "nano33ble":  # with its microphone
        words = made(found.hardware, graph=network_of(WORDS), frontend=WORDS)
        assert words.memory.statics_bytes < WORDS.state_bytes + 2_048 < words.memory.flash_bytes
        arduino.package(words).write(tmp_path)
        listen = "examples/Listen/Listen.ino"
        said(["arm-none-eabi-g++", *flags, *sketch, listen], tmp_path / "digits")


@needs_arm
@needs_cmake
@pytest.mark.ci
def test_an_application_of_the_pico_sdk(tmp_path: Path) -> None:
    """Against a stub, or built whole with a clone that THIMBLE_PICO_SDK names."""
    found = made(board_named("pico"), "-O2", network())
    cmake.package(found).write(tmp_path)
    if clone := os.environ.get("THIMBLE_PICO_SDK"):
        options = ["-DPICO_BOARD=pico", "-DPICO_NO_PICOTOOL=1", f"-DPICO_SDK_PATH={clone}"]
        environment = {**os.environ, "PICO_SDK_PATH": clone}
        said(["cmake", "-S", "digits/pico", "-B", "build", *options], tmp_path, env=environment)
        said(["cmake", "--build", "build"], tmp_path)
        assert (tmp_path / "build" / "classify.elf").is_file()
    else:
        flags = [flag for flag in found.hardware.toolchain.flags if flag.startswith("-m")]
        flags += ["-Wall", "-Wextra", "-Werror", f"-I{STUBS}", "-Idigits/src", "-c"]
        said(["arm-none-eabi-gcc", *flags, "digits/pico/main.c"], tmp_path)


@needs_arm
@needs_cmake
@pytest.mark.ci
def test_a_module_of_zephyr(tmp_path: Path) -> None:
    """With stubs of the functions that Zephyr has for modules."""
    cmake.package(made(board_named("nrf52840_dk"), "-O2", network())).write(tmp_path)
    module = f"-DMODULE={tmp_path / 'digits'}"
    said(["cmake", "-S", STUBS, "-B", "build", module, "-DCONFIG_DIGITS=y"], tmp_path)
    said(["cmake", "--build", "build"], tmp_path)
    assert (tmp_path / "build" / "module" / "libdigits.a").is_file()
    about = yaml.safe_load((tmp_path / "digits" / "zephyr" / "module.yml").read_text())
    assert about == {"name": "digits", "build": {"cmake": "zephyr", "kconfig": "zephyr/Kconfig"}}


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
        boards.check("platformio", name, board.platformio)
    with pytest.raises(ThimbleError, match="hardware=host is not known to be one of its boards;"):
        boards.check("platformio", "host", "")


@pytest.fixture(scope="module")
def folder(in_flash: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("library")
    arduino.package(in_flash).write(place)
    return place / "digits"


@needs_avr
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
    for line, outputs in zip(answers, graph.evaluate(given).reshape(6, -1), strict=True):
        found = re.fullmatch(r"((?:-?\d+ )+)(.+) (\d+) us", line)
        assert found and [int(n) for n in found[1].split()] == outputs.tolist()
        assert found[2] == LABELS[int(outputs.argmax())] and 10_000 < int(found[3]) < 60_000
    # what the sketch says and the note agree: its Serial, the core and its own stack are between
    beside = in_flash.memory.left_bytes - left
    assert arduino.CORE_BYTES + arduino.SERIAL_BYTES - 10 < beside < 250
    assert deep < in_flash.memory.stack.bytes + 80


@needs_avr
@pytest.mark.ci
@needs_core
def test_smallest_sketch_blinks(folder: Path, core: Path, uno: Uno, tmp_path: Path) -> None:
    """As many times as the class says."""
    elf = sketch(folder, "Smallest", core, tmp_path)
    graph = mnist().graph()
    image = (np.arange(784) % 256).reshape(1, 28, 28, 1)
    times = int(graph.evaluate(image).argmax()) + 1
    said, _ = uno(elf, b"", image=0, lines=times)
    assert said == "L" * times


@needs_avr
def test_header_says_the_stack(in_flash: Library) -> None:
    header = in_flash.placed({}, {})["src/kws.h"]
    said = re.search(r"#define KWS_STACK_BYTES (\d+) /\* .*: avr-gcc [\d.]+ -Os \*/", header)
    assert said and int(said[1]) == in_flash.memory.stack.bytes and 30 < int(said[1]) < 64
    assert "KWS_STACK_BYTES of it at most" in header and "KWS_LABEL_BYTES 6 " in header


@needs_avr
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


@needs_avr
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


@needs_avr
def test_refuses_what_has_no_room_and_what_has_no_board(in_sram: Library) -> None:
    full = replace(in_sram, memory=replace(in_sram.memory, sram_limit_bytes=2000))
    missing = in_sram.memory.sram_bytes + arduino.CORE_BYTES - 2000
    with pytest.raises(ThimbleError, match=f"no room for any sketch, {missing} B are missing; try"):
        arduino.package(full)
    with pytest.raises(ThimbleError, match="hardware=host is not known to have an Arduino core;"):
        boards.check("arduino", "host", "")
    boards.check("cmake", "anything", "")


@needs_avr
@pytest.mark.parametrize(
    ("name", "version", "said"),
    [("digits", "1.0", "give three numbers"), ("9", "1.0.0", "begins with a letter")],
)
def test_refuses_names_and_versions(name: str, version: str, said: str) -> None:
    graph, hardware = mnist().graph(), load_hardware()
    plan = Herringbone("slots").plan(graph, hardware)
    with pytest.raises(ThimbleError, match=said):
        library(graph, plan, hardware, {}, Options(), name, version, "-Os")


ZEPHYR = Path(__file__).with_name("zephyr.h").read_text()
CUBE = Path(__file__).with_name("cube.h").read_text()


def blocks(name: str) -> list[str]:
    text = (ROOT / "docs" / f"{name}.md").read_text()
    return re.findall(r"```c\n(.*?)```", text, re.DOTALL)


def test_the_manuals_program_runs(tmp_path: Path) -> None:
    (program,) = blocks("embedding")
    graph = mnist().graph()
    scale = {**graph.tensors, graph.input: replace(graph.tensors[graph.input], scale=(1 / 256,))}
    graph = replace(graph, tensors=scale)
    files = generate(graph, Ordinary("slots").plan(graph, uno()), uno(), {})
    write(tmp_path, {**files, "main.c": program})
    said(["cc", *WARNINGS, "model.c", "main.c", "-o", "program"], tmp_path)
    image = np.clip(np.floor(np.arange(784) / 784 * 256 + 0.5), 0, 255).astype(np.int64)
    outputs = graph.evaluate(image.reshape(1, 28, 28, 1)).reshape(-1)
    label, real = said([tmp_path / "program"]).strip().split(", ")
    assert int(label) == outputs.argmax()
    assert float(real) == outputs.max() * graph.tensors[graph.output].scale[0]


def test_zephyrs_thread_and_the_loop_of_a_cube_project(tmp_path: Path) -> None:
    """With a network of bytes whose prefix is kws, and whose stack is known."""
    graph, options = network(), Options("kws", stack=Stack(400, "a compiler"))
    files = generate(graph, Ordinary().plan(graph, host()), host(), {}, options)
    write(tmp_path, Prefix("kws").files(files))
    write(tmp_path / "zephyr", {"kernel.h": ZEPHYR})
    (thread,), (text,) = blocks("zephyr"), blocks("stm32cube")
    begin, loop = text.split("/* USER CODE END Includes */")
    command = ["cc", *WARNINGS, "-Wno-unused-parameter", "-I.", "-x", "c", "-fsyntax-only", "-"]
    for program in (thread, f"{CUBE}{begin}int main(void) {{ for (;;) {{\n{loop}\n}} }}\n"):
        said(command, tmp_path, input=program)


def test_every_macro_of_the_manual_is_in_the_header(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "embedding.md").read_text()
    table = text.partition("## What the header says")[2].partition("## Streams")[0]
    made_of, header = {"graph": "0", "plan": "1"}, ""
    for graph in (network(), several(4), recurrent()):
        plan = Ordinary().plan(graph, host())
        options = Options(stack=Stack(400, "a compiler"))
        header += generate(graph, plan, host(), made_of, options)["model.h"]
    said = set(re.findall(r"\bNN_[A-Z_]+[A-Z]\b|\bnn_\w+(?=\(| |`)", table))
    assert len(said) > 20
    assert not [name for name in said if not re.search(rf"\b{name}\b", header)]
