"""Compilers, simulators and their headers: missed before the first stage, not after the training.

The stages that need them look for them, too; this says so earlier, of those that a run will reach.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from pipeline.errors import ThimbleError
from pipeline.home import STAGES, no_later

HEADERS = {"avr": "avr/io.h", "cortex_m": "string.h", "host": "string.h"}
"""Header of the C library's package that the compiler's has not, by ``hardware.core``."""

SIMAVR = ("libsimavr-dev libelf-dev", "runs AVR firmware")
SIMULATORS = {
    "simavr": (("cc", "simavr/sim_avr.h", *SIMAVR), ("cc", "libelf.h", *SIMAVR)),
    "qemu": (("qemu-system-arm", "", "qemu-system-arm", "runs Cortex-M firmware"),),
}
PAPER = "pipeline.training.paper.Paper"


class Need(NamedTuple):
    """Tool that is not there, what it is for, what to type to have it, and what to do without."""

    lacking: str
    purpose: str
    install: str
    without: str


def check(config: Mapping[str, Any]) -> None:
    """Raise ThimbleError for the first tool that a stage of this run would miss."""
    for need in missing(config):
        raise ThimbleError("{} ({}): {}; {} does without".format(*need))


def missing(config: Mapping[str, Any]) -> Iterator[Need]:
    """Yield what a stage of this run would miss."""
    for program, header, packages, purpose, without in _tools(config):
        if not shutil.which(program):
            lacking = f"{program} is not installed"
        elif header and not _includes(program, header):
            lacking = f"{program} does not find {header}"
        else:
            continue
        yield Need(lacking, purpose, f"sudo apt-get install {packages}", without)


def _tools(config: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield programs, a header that goes with it or "", the Debian packages that have them, what
    they are for, and what to type to do without."""
    hardware, until = config["hardware"], config["until"]
    tool, core, simulator = hardware["toolchain"], hardware["core"], hardware["simulator"]
    trains = no_later(config["model"].get("enters") or STAGES[0], "train")
    if config["train"]["_target_"] == PAPER and trains and no_later("train", until):
        yield "gcc", "", "gcc libc6-dev", "compiles the loops of train=paper", "train=quick"
    builds = no_later("build", until)
    if not builds and config["package"]["name"] == "none":
        return
    less = "until=generate" if builds else "package=none"
    told = (tool["package"], f"builds for {hardware['title']}", less)
    yield tool["compiler"], HEADERS.get(core, ""), *told
    for key in ("objdump",) if core == "host" else ("objcopy", "objdump"):
        yield tool[key], "", *told
    yield "cc", "string.h", "gcc libc6-dev", "builds the native program", less
    if no_later("simulate", until) and config["target"]["name"] == "simulate":
        for program, header, packages, purpose in SIMULATORS.get(simulator, ()):
            yield program, header, packages, purpose, "target=host"


@cache
def _includes(compiler: str, header: str) -> bool:
    command = [compiler, "-x", "c", "-E", "-o", "/dev/null", "-"]
    source = f"#include <{header}>\n".encode()
    return not subprocess.run(command, input=source, capture_output=True, check=False).returncode
