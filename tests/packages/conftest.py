"""Packages of a small network, and an Arduino Uno that is simulated with its serial line."""

import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipeline.codegen.options import Options
from pipeline.errors import ThimbleError
from pipeline.frontends.frontend import Frontend
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.packages.library import Library, library
from pipeline.strategies.in_place import Herringbone
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets import simavr
from tests.programs import said
from tests.strategies.chains import mnist
from tests.targets.conftest import load_hardware

PIECE = "32"
"""Bytes that the sketch asks for at a time."""
BOARD = Path(__file__).parent / "board.c"


def made(
    hardware: Hardware, level: str = "-Os", graph: Graph | None = None,
    frontend: Frontend | None = None, **options: object,
) -> Library:  # fmt: skip
    """``graph``, or the network of 2 KB, as a library for ``hardware``."""
    found = graph or mnist().graph()
    strategy = Herringbone("slots") if hardware.core == "avr" else Ordinary()
    plan = strategy.plan(found, hardware)
    chosen = Options(**options)  # type: ignore[arg-type]
    return library(
        found, plan, hardware, {"graph": found.hash}, chosen, name="digits", version="1.2.3",
        level=level, frontend=frontend,
    )  # fmt: skip


@pytest.fixture(scope="session")
def in_flash() -> Library:
    return made(load_hardware(weights_in="flash"), prefix="kws", labels=LABELS)


@pytest.fixture(scope="session")
def in_sram() -> Library:
    return made(load_hardware(weights_in="sram"))


LABELS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", 'a "9"')


@pytest.fixture(scope="session")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """core.a of the Uno."""
    folder = tmp_path_factory.mktemp("core")
    for source in sorted(SOURCES.iterdir()):
        if source.suffix in (".c", ".cpp", ".S"):
            made = folder / f"{source.name}.o"
            _compile(source, made, warnings=False)
            said(recipe("ar", archive_file_path=str(folder / "core.a"), object_file=str(made)))
    return folder / "core.a"


@dataclass(frozen=True)
class Uno:
    program: Path

    def __call__(self, elf: Path, line: bytes, image: int, lines: int) -> tuple[str, int]:
        """Send ``line``, images of so many bytes; return the answer and the stack's depth."""
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


CORE = Path("/usr/share/arduino/hardware/arduino/avr")
SOURCES = CORE / "cores" / "arduino"

FOR_OLD_GCC = {"WString.cpp": "-DDECIMAL_DIG=__DECIMAL_DIG__"}
"""Options that the core's own sources need for avr-gcc 5.4, whose float.h lacks it in C++."""

needs_core = pytest.mark.skipif(
    not (CORE / "platform.txt").is_file() or shutil.which("avr-g++") is None,
    reason="the Arduino AVR core is not installed: sudo apt-get install arduino-core-avr",
)


def properties() -> dict[str, str]:
    """Read platform.txt, and of boards.txt the Uno as the platform sees it."""
    lines = (CORE / "platform.txt").read_text().splitlines()
    for line in (CORE / "boards.txt").read_text().splitlines():
        if line.startswith("uno."):
            lines.append(line.removeprefix("uno."))
    pairs = (line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return {
        **{key.strip(): value for key, value in pairs},
        "build.arch": "AVR",
        "runtime.ide.version": "10819",
        "compiler.warning_flags": "-Wall -Wextra",
    }


def recipe(name: str, **given: str) -> list[str]:
    """A command of platform.txt, all of whose names are replaced."""
    known = {**properties(), **given}
    text = known[f"recipe.{name}.pattern"]
    while re.search(r"\{[\w.]+\}", text):
        text = re.sub(r"\{([\w.]+)\}", lambda found: known.get(found[1], ""), text)
    return [part for part in shlex.split(text) if part]


def sketch(library: Path, name: str, core: Path, folder: Path) -> Path:
    """The example ``name`` of ``library`` as an ELF, as the IDE makes it."""
    ino = library / "examples" / name / f"{name}.ino"
    main = folder / f"{name}.ino.cpp"
    folder.mkdir(parents=True, exist_ok=True)
    main.write_text(f'#include <Arduino.h>\n#line 1 "{name}.ino"\n{ino.read_text()}')
    objects = []
    for source in (main, *sorted((library / "src").glob("*.c"))):
        objects.append(folder / f"{source.name}.o")
        _compile(source, objects[-1], library / "src")
    command = recipe(
        "c.combine", **{"build.path": str(folder), "build.project_name": name},
        object_files=" ".join(map(str, objects)), archive_file=str(core),
    )  # fmt: skip
    command = [part.replace(f"{folder}/{core}", str(core)) for part in command]
    said(command)
    return folder / f"{name}.elf"


def _compile(source: Path, made: Path, *includes: Path, warnings: bool = True) -> None:
    folders = (SOURCES, CORE / "variants" / "standard", *includes)
    includes = " ".join(f"-I{folder}" for folder in folders)
    given = {"source_file": str(source), "object_file": str(made), "includes": includes}
    kind = {".c": "c", ".cpp": "cpp", ".S": "S"}[source.suffix]
    command = recipe(f"{kind}.o", **given)
    own = [FOR_OLD_GCC[source.name]] if source.name in FOR_OLD_GCC else []
    said([*command, *own, *(["-Werror"] if warnings else [])])
