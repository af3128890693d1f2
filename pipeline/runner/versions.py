"""The versions that results depend on besides code and config; part of the stages' keys."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from pipeline import home

NAME = "thimble-mcu"
"""The project's, for pip."""

SIMULATORS = {
    "simavr": ("pkg-config", "--modversion", "simavr"),
    "qemu": ("qemu-system-arm", "--version"),
}


def found(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the versions of the cross compiler and simulator of ``config``, the native compiler
    and PyTorch.

    What is not installed is ``""``: the stage that needs it says so.
    """
    return {
        "compiler": _first_line(str(config["hardware"]["toolchain"]["compiler"]), "--version"),
        "host": _first_line("gcc", "--version"),
        "simulator": _first_line(*SIMULATORS.get(str(config["hardware"]["simulator"]), ("",))),
        "torch": _package("torch"),
    }


def own() -> str:
    """The project's version: of the source tree, or of what is installed."""
    tree = home.ROOT / "pyproject.toml"
    if tree.is_file():
        return str(tomllib.loads(tree.read_text())["project"]["version"])
    return metadata.version(NAME)


def _first_line(program: str, *args: str) -> str:
    if not shutil.which(program):
        return ""
    done = subprocess.run([program, *args], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    return lines[0].strip() if done.returncode == 0 and lines else ""


def _package(name: str) -> str:
    """Its public version: the same release built for another index is the same."""
    try:
        return metadata.version(name).partition("+")[0]
    except metadata.PackageNotFoundError:
        return ""
