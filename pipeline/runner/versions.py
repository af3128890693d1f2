"""The versions and the processor that results depend on besides code and config."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from pipeline import home

SIMULATORS = {
    "simavr": ("pkg-config", "--modversion", "simavr"),
    "qemu": ("qemu-system-arm", "--version"),
}
VECTORS = ("avx512f", "avx2", "fma", "asimd", "sve")


def found(config: Mapping[str, Any]) -> dict[str, str]:
    """Return what is part of the stages' keys: the versions of the cross compiler and simulator of
    ``config``, the native compiler and PyTorch, of any build.

    What is not installed is ``""``: the stage that needs it says so.
    """
    return {
        "compiler": _first_line(str(config["hardware"]["toolchain"]["compiler"]), "--version"),
        "host": _first_line("gcc", "--version"),
        "simulator": _first_line(*SIMULATORS.get(str(config["hardware"]["simulator"]), ("",))),
        "torch": metadata.version("torch").partition("+")[0],
    }


def surroundings() -> dict[str, str]:
    """Python, NumPy, the exact build of PyTorch, the processor and its vector instructions: what
    training rounds by; a replay compares it."""
    about = ""
    with suppress(OSError):  # only Linux has it
        about = Path("/proc/cpuinfo").read_text()
    processor, flags = (
        re.search(rf"^({name})\s*: (.*)", about, re.M) for name in ("model name", "flags|Features")
    )
    known = flags[2].split() if flags else ()
    return {
        "python": platform.python_version(),
        "numpy": metadata.version("numpy"),
        "torch_build": metadata.version("torch"),
        "machine": platform.machine(),
        "processor": processor[2] if processor else platform.processor(),
        "vectors": " ".join(name for name in VECTORS if name in known),
    }


def own() -> str:
    """Return the project's version: of the source tree, or of what is installed."""
    tree = home.ROOT / "pyproject.toml"
    if tree.is_file():
        return str(tomllib.loads(tree.read_text())["project"]["version"])
    return metadata.version("thimble-mcu")


def _first_line(program: str, *args: str) -> str:
    if not shutil.which(program):
        return ""
    done = subprocess.run([program, *args], capture_output=True, text=True, check=False)
    return done.stdout.partition("\n")[0].strip() if done.returncode == 0 else ""
