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
"""By ``hardware.core``: what the C library's package has and the compiler's has not."""

SIMULATORS = {
    "simavr": ("cc", "libsimavr-dev libelf-dev", "runs AVR firmware"),
    "qemu": ("qemu-system-arm", "qemu-system-arm", "runs Cortex-M firmware"),
}
SIMAVR_HEADERS = ("simavr/sim_avr.h", "libelf.h")
PAPER = "pipeline.training.paper.Paper"


class Need(NamedTuple):
    """A program and a header that goes with it, the Debian packages that have them, what they are
    for, and what to type to do without."""

    program: str
    packages: str
    purpose: str
    without: str
    header: str = ""

    @property
    def lacking(self) -> str:
        """What is not there, in words; empty if all is."""
        if not shutil.which(self.program):
            return f"{self.program} is not installed"
        there = not self.header or _includes(self.program, self.header)
        return "" if there else f"{self.program} does not find {self.header}"

    @property
    def install(self) -> str:
        return f"sudo apt-get install {self.packages}"


def check(config: Mapping[str, Any]) -> None:
    """Raise ThimbleError for the first tool that a stage of this run would miss."""
    for need in missing(config):
        raise ThimbleError(
            f"{need.lacking} ({need.purpose}): {need.install}; {need.without} does without"
        )


def missing(config: Mapping[str, Any]) -> Iterator[Need]:
    """Yield what a stage of this run would miss."""
    return (need for need in _needs(config) if need.lacking)


def _needs(config: Mapping[str, Any]) -> Iterator[Need]:
    hardware, until = config["hardware"], config["until"]
    tool, core, simulator = hardware["toolchain"], hardware["core"], hardware["simulator"]
    trains = no_later(config["model"].get("enters") or STAGES[0], "train")
    if config["train"]["_target_"] == PAPER and trains and no_later("train", until):
        yield Need("gcc", "gcc libc6-dev", "compiles the loops of train=paper", "train=quick")
    builds = no_later("build", until)
    if not builds and config["package"]["name"] == "none":
        return
    less = "until=generate" if builds else "package=none"
    told = (tool["package"], f"builds for {hardware['title']}", less)
    yield Need(tool["compiler"], *told, HEADERS.get(core, ""))
    for key in ("objdump",) if core == "host" else ("objcopy", "objdump"):
        yield Need(tool[key], *told)
    yield Need("cc", "gcc libc6-dev", "builds the native program", less, "string.h")
    simulates = no_later("simulate", until) and config["target"]["name"] == "simulate"
    if simulates and simulator in SIMULATORS:
        for header in SIMAVR_HEADERS if simulator == "simavr" else ("",):
            yield Need(*SIMULATORS[simulator], "target=host", header)


@cache
def _includes(compiler: str, header: str) -> bool:
    done = subprocess.run(
        [compiler, "-x", "c", "-E", "-o", "/dev/null", "-"],
        input=f"#include <{header}>\n".encode(),
        capture_output=True,
        check=False,
    )
    return done.returncode == 0
