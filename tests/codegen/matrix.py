"""Every pair of core, compiler, standard, optimization and network at least once, in few cases."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from itertools import combinations, product
from pathlib import Path

from pipeline.hardware import Hardware
from tests.targets.conftest import load_hardware
from tests.targets.cortex_m import board_named

WARNINGS = ("-Wall", "-Wextra", "-Werror")
AXES = {
    "core": ("avr", "cortex-m0plus", "cortex-m4", "cortex-m7", "cortex-m33", "x86-64"),
    "compiler": ("gcc", "clang"),
    "standard": ("gnu99", "gnu11"),
    "level": ("-O0", "-O1", "-O2", "-O3", "-Os"),
    "lto": ("", "-flto"),
    "network": ("nibbles in SRAM", "nibbles in flash", "bytes"),
}
BOARDS = {
    "cortex-m0plus": "nucleo_g0b1re",
    "cortex-m4": "nucleo_l4r5zi",
    "cortex-m7": "nucleo_f767zi",
    "cortex-m33": "nucleo_u575zi",
    "x86-64": "host",
}
WHOLE = ("avr", "x86-64")
"""Where the harness is optimized together with the network; the Cortex-M's start-up code names
variables in assembly, and is not."""
LLD = any(map(shutil.which, ("ld.lld", "ld.lld-14")))
CLANG = next((name for name in ("clang", "clang-14") if LLD and shutil.which(name)), "")
"""Its linker goes with it: GNU's knows nothing of what it leaves for link-time optimization."""
HEADERS = {"avr": "/usr/lib/avr/include", "arm": "/usr/lib/arm-none-eabi/include"}
"""Of the C libraries, as Debian has them: clang does not look there by itself."""


@dataclass(frozen=True)
class Case:
    core: str
    compiler: str
    standard: str
    level: str
    lto: str
    network: str

    @property
    def links(self) -> bool:
        """The linkers for boards know nothing of what clang leaves for link-time optimization."""
        return not (self.compiler == "clang" and self.lto) or self.core == "x86-64"

    def __str__(self) -> str:
        return " ".join(value for value in astuple(self) if value)


def cases() -> Iterator[Case]:
    """Greedily: the case with most pairs that no other has had, until none is left; of several
    the one whose values have been used least."""
    every = [case for values in product(*AXES.values()) if (case := Case(*values)).links]
    left, used = {pair for case in every for pair in _pairs(case)}, Counter[str]()
    while left:
        best = max(every, key=lambda c: (len(left & _pairs(c)), -sum(used[v] for v in astuple(c))))
        left -= _pairs(best)
        used.update(astuple(best))
        yield best


def _pairs(case: Case) -> frozenset[tuple[str, str, str, str]]:
    values = [(name, getattr(case, name)) for name in AXES]
    return frozenset((*one, *other) for one, other in combinations(values, 2))


def hardware(case: Case) -> Hardware:
    """The board of ``case``, with its flags."""
    weights_in = "sram" if case.network == "nibbles in SRAM" else "flash"
    if case.core == "avr":
        streams = case.network != "bytes"
        found = load_hardware(weights_in=weights_in, streams_input=streams)
    else:
        found = board_named(BOARDS[case.core], weights_in=weights_in)
    kept = [f for f in found.toolchain.flags if not f.startswith(("-std=", "-O", "-W", "--"))]
    linker = [f for f in found.toolchain.flags if f.startswith("-Wl,")]
    flags = (*kept, *linker, "-std=gnu11", "-O2", *WARNINGS)
    return replace(found, toolchain=replace(found.toolchain, flags=flags))


def with_compiler(folder: Path, case: Case, found: Hardware) -> Hardware:
    """``found`` with the compiler of ``case``. Boards' harness and linking are left to GCC, whose
    C library and start-up code they are."""
    gcc, core = shutil.which(found.toolchain.compiler), found.core
    target = {"avr": "avr", "cortex_m": "arm-none-eabi"}.get(core)
    there = f"--target={target} -isystem{HEADERS[target[:3]]}" if target else "-fuse-ld=lld"
    clang = f"{CLANG} {there} -Wno-unused-command-line-argument"
    own = f"-std={case.standard} {case.level} {case.lto}"
    chosen = clang if case.compiler == "clang" else gcc
    network = f'case " $* " in *" -c model.c "*) exec {chosen} "$@" {own};; esac'
    script = folder / "compiler"
    others = f'exec {gcc if target else chosen} {case.lto if case.core in WHOLE else ""} "$@"'
    script.write_text("\n".join(["#!/bin/sh", network, others, ""]))
    script.chmod(0o755)
    return replace(found, toolchain=replace(found.toolchain, compiler=str(script)))
