"""A small built firmware (fixture/model.c) and the simulator's shim, made once a session; and
builds of tests, sooner: what is alike is compiled once a session, and the native program beside a
firmware only where a test asks for it."""

import hashlib
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware
from pipeline.targets import simavr, toolchain, tools
from pipeline.targets.harness import harness_sources
from pipeline.targets.toolchain import Size
from tests.boards import load_hardware as load_hardware
from tests.programs import written

ROOT = Path(__file__).resolve().parents[2]
MODEL = Path(__file__).parent / "fixture"

TEMPLATE = Path(__file__).with_name("template.c").read_text()


def model(globals: str = "", feed: str = "", invoke: str = "") -> str:
    """A model.c whose functions do what is given: outputs are the arena's first bytes."""
    return TEMPLATE % {"globals": globals, "feed": feed, "invoke": invoke}


def on_avr(code: str) -> str:
    """Code that the native build of the same sources leaves out."""
    return f"\n#ifdef __AVR__\n{code}\n#endif\n"


needs_avr = pytest.mark.skipif(
    shutil.which("avr-gcc") is None or shutil.which("avr-objdump") is None,
    reason="avr-gcc is not installed: make setup",
)


def generate(folder: Path, hardware: Hardware, model: str | None = None) -> Path:
    """A folder as stage generate leaves it, with ``model`` for model.c."""
    files = harness_sources(hardware) | {file.name: file.read_text() for file in MODEL.iterdir()}
    return written(folder, files if model is None else {**files, "model.c": model})


def expected(images: np.ndarray) -> np.ndarray:
    """Compute what fixture/model.c answers."""
    text = (MODEL / "model.c").read_text()
    braces = re.search(r"nn_weights\[[^]]*\] = \{([^}]*)\}", text)
    assert braces
    weights = np.array([int(v) for v in braces[1].split(",")]).reshape(3, 16)
    return (images.reshape(-1, 16).astype(np.int64) @ weights.T).astype(np.int16)


@pytest.fixture(scope="session")
def arduino() -> Hardware:
    return load_hardware()


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory, arduino: Hardware) -> Path:
    return generate(tmp_path_factory.mktemp("model") / "generated", arduino)


@pytest.fixture(scope="session")
def built(
    tmp_path_factory: pytest.TempPathFactory, arduino: Hardware, generated: Path
) -> tuple[Path, Size]:
    folder = tmp_path_factory.mktemp("built")
    size = toolchain.build(generated, folder, arduino)
    toolchain.build_host(generated, folder / "host")  # whose test may be one of ``no_host``
    return folder, size


@pytest.fixture(scope="session")
def host_program(tmp_path_factory: pytest.TempPathFactory, generated: Path) -> Path:
    """The native program with ASan and UBSan."""
    program = tmp_path_factory.mktemp("host") / "host"
    toolchain.build_host(generated, program, sanitize=True)
    return program


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return simavr.compile_shim(tmp_path_factory.mktemp("shim"))
    except ThimbleError as error:
        pytest.skip(str(error))


INCLUDE = re.compile(rb'^\s*#\s*include\s+(?:"([^"]+)"|([A-Z_]+))', re.M)
PLAIN = tools.run


class Once:
    """Stand in for ``tools.run``: keep what compilers make, by command and all that they read."""

    def __init__(self, kept: Path) -> None:
        self.kept = kept

    def __call__(self, command: Sequence[str], folder: Path, doing: str) -> str:
        sources = [word for word in command if word.endswith(".c")]
        if not sources or "-o" not in command:
            return PLAIN(command, folder, doing)
        at = command.index("-o") + 1
        made = folder / command[at]
        key = hashlib.sha256(" ".join((*command[:at], *command[at + 1 :])).encode())
        for path in sorted(read(sources, folder)):
            key.update(path.read_bytes())
        kept = self.kept / key.hexdigest()
        if kept.exists():
            shutil.copy(kept, made)
            return ""
        said = PLAIN(command, folder, doing)
        shutil.copy(made, kept)
        return said


def read(sources: Sequence[str], folder: Path) -> set[Path]:
    """List ``sources`` and the files beside them that they include; for a macro, all of them."""
    found, left = set[Path](), [folder / source for source in sources]
    while left:
        path = left.pop()
        if path not in found and path.exists():
            found.add(path)
            for name, macro in INCLUDE.findall(path.read_bytes()):
                word = name.decode()
                left += path.parent.glob("*.h") if macro else (path.parent / word, folder / word)
    return found


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what was compiled once."""
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture(scope="module")
def compiled_once(kept: Path) -> Iterator[None]:
    """Compile what is alike once, and native programs without optimizing."""
    flags = tuple(flag.replace("-O2", "-O0") for flag in toolchain.HOST.flags)
    host = replace(toolchain.HOST, flags=flags)
    with patch.object(tools, "run", Once(kept)), patch.object(toolchain, "HOST", host):
        yield


@pytest.fixture(scope="module")
def no_host() -> Iterator[None]:
    """Build no ``host`` beside a firmware: ``toolchain.build_host`` still does."""
    with patch.object(toolchain, "host_meanwhile", lambda generated, output: nullcontext()):
        yield
