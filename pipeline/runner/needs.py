"""Compilers, simulators and their headers: missed before the first stage, not after the training.

The stages that need them look for them, too; this says so earlier, of those that a run will reach.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pipeline.errors import ThimbleError
from pipeline.home import STAGES

HEADERS = {"avr": "avr/io.h", "cortex_m": "string.h", "host": "string.h"}
"""By ``hardware.core``: what the C library's package has and the compiler's has not."""

HOST = ("cc", "gcc libc6-dev", "builds the native program")
SIMULATORS = {
    "simavr": ("cc", "libsimavr-dev libelf-dev", "runs AVR firmware"),
    "qemu": ("qemu-system-arm", "qemu-system-arm", "runs Cortex-M firmware"),
}
SIMAVR_HEADERS = ("simavr/sim_avr.h", "libelf.h")
PAPER = "pipeline.training.paper.Paper"

Need = tuple[str, str, str]
"""A program, the Debian packages that have it, and what it is for."""


def check(config: Mapping[str, Any]) -> None:
    """Raise ThimbleError for the first tool that a stage of this run would miss."""
    for said, purpose, install, without in missing(config):
        raise ThimbleError(f"{said} ({purpose}): {install}; {without} does without")


def missing(config: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Yield what a stage of this run would miss, what it is for, the line that installs it, and
    what to type to do without."""
    for (program, packages, purpose), header, without in _needs(config):
        if not shutil.which(program):
            said = f"{program} is not installed"
        elif header and not _includes(program, header):
            said = f"{program} does not find {header}"
        else:
            continue
        yield said, purpose, f"sudo apt-get install {packages}", without


def _needs(config: Mapping[str, Any]) -> Iterator[tuple[Need, str, str]]:
    """What is needed, a header that goes with it, and what to type to do without."""
    hardware, target = config["hardware"], _word(config["target"]["name"])
    last = STAGES.index(_word(config["until"]))
    enters = STAGES.index(config["model"].get("enters") or STAGES[0])
    if config["train"]["_target_"] == PAPER and enters <= STAGES.index("train") <= last:
        yield ("gcc", "gcc libc6-dev", "compiles the loops of train=paper"), "", "train=quick"
    packaged = _word(config["package"]["name"]) != "none"
    if last < STAGES.index("build") and not packaged:
        return
    less = "until=generate" if last >= STAGES.index("build") else "package=none"
    tool = hardware["toolchain"]
    purpose = f"builds for {hardware['title']}"
    header = HEADERS.get(hardware["core"], "")
    yield (tool["compiler"], tool["package"], purpose), header, less
    for key in ("objdump",) if hardware["core"] == "host" else ("objcopy", "objdump"):
        yield (tool.get(key, key), tool["package"], purpose), "", less
    yield HOST, "string.h", less
    if last < STAGES.index("simulate") or target != "simulate":
        return
    simulator = hardware["simulator"]
    if simulator in SIMULATORS:
        headers = SIMAVR_HEADERS if simulator == "simavr" else ("",)
        for each in headers:
            yield SIMULATORS[simulator], each, "target=host"


@cache
def _includes(compiler: str, header: str) -> bool:
    done = subprocess.run(
        [compiler, "-x", "c", "-E", "-o", "/dev/null", "-"],
        input=f"#include <{header}>\n".encode(),
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


def _word(value: Any) -> str:
    """The name of an option, which OmegaConf makes an Enum."""
    return str(getattr(value, "name", value))
