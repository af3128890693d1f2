"""Measure the memory of a network in C by itself: compiled, and linked to calls of it alone."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from pipeline import artifacts, ihex
from pipeline.codegen.options import Stack
from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware
from pipeline.targets import avr_stack, elf, thumb_stack, toolchain, tools

FUNCTIONS = ("nn_init", "nn_feed", "nn_invoke", "nn_output")


class _Some(NamedTuple):
    """A function that only some networks have: what their headers say, and a call."""

    said: str
    call: str


MORE = {
    "nn_input": _Some("nn_input_t *nn_input(void);", "nn_input()[0] = 1"),
    "nn_listen": _Some("nn_status_t nn_listen(", "nn_listen(sink, 1)"),
    "nn_load": _Some("nn_status_t nn_load(", "nn_load(0, sink, 1)"),
    "nn_loaded": _Some("nn_status_t nn_loaded(", "nn_loaded()"),
}
CALLS = """\
#include "model.h"
static uint8_t sink[1];
int main(void) {
    nn_init();
    nn_feed(sink, 1);
    nn_invoke();
    *(volatile uint8_t *)sink = (uint8_t)nn_output()[0];
%s    for (;;) {
    }
}
"""
NO_STACK = Stack(0, "")


@dataclass(frozen=True)
class Memory:
    """
    Attributes:
        statics_bytes: of RAM: activations, and weights that are there.
        stack: of the deepest function; of no bytes where no bound is known.
        flash_bytes: code, tables and weights.
        sram_limit_bytes: of the board.
    """

    statics_bytes: int
    stack: Stack
    flash_bytes: int
    sram_limit_bytes: int

    @property
    def sram_bytes(self) -> int:
        return self.statics_bytes + self.stack.bytes

    @property
    def left_bytes(self) -> int:
        """Below 0: so much is missing."""
        return self.sram_limit_bytes - self.sram_bytes

    @property
    def said(self) -> str:
        return (
            f"{self.sram_bytes:,} of {self.sram_limit_bytes:,} B of RAM, its stack of "
            f"{self.stack.bytes} B included, and {self.flash_bytes:,} B of flash"
        )


def measure(files: Mapping[str, str], hardware: Hardware, level: str) -> Memory:
    """Measure generated C, text by default name, compiled for ``hardware`` with option ``level``.

    Raises:
        ThimbleError: a tool is missing, the sources do not compile, or the stack has no bound.
    """
    if hardware.core == "host":
        return Memory(0, NO_STACK, 0, hardware.sram_bytes)
    tool = hardware.toolchain
    for command in (tool.compiler, tool.objcopy, tool.objdump):
        tools.require(command, tool.package, f"measures what the package takes of {hardware.title}")
    flags = tuple(level if flag.startswith("-O") else flag for flag in tool.flags)
    with tempfile.TemporaryDirectory(prefix="thimble.") as name:
        folder = Path(name)
        for file, content in files.items():
            artifacts.write_text(folder / file, content)
        roots = [*FUNCTIONS, *_more((folder / "model.h").read_text())]
        called = (f"    {MORE[root].call};\n" for root in roots if root in MORE)
        artifacts.write_text(folder / "calls.c", CALLS % "".join(called))
        more = ("-nostartfiles", "-Wl,-emain") if hardware.core == "cortex_m" else ()
        toolchain.compile_program(folder, folder / "calls.elf", replace(tool, flags=flags), more)
        program = elf.read(folder / "calls.elf", tool.objdump)
        deepest = _deepest(folder, program, hardware, roots)
        said = tools.run([tool.compiler, "-dumpversion"], folder, tool.compiler).strip()
    stack = Stack(deepest, f"{tool.compiler} {said} {level}")
    beside = sum(s.bytes for s in program.ram_objects if s.name == "sink")
    beside += program.size(".rodata") * (hardware.core != "avr")  # constants lie in flash
    return Memory(program.statics_bytes - beside, stack, program.flash_bytes, hardware.sram_bytes)


def _more(header: str) -> list[str]:
    return [name for name, more in MORE.items() if more.said in header]


def _deepest(folder: Path, program: elf.Elf, hardware: Hardware, roots: list[str]) -> int:
    """Return the deepest stack of all functions, in bytes below the caller's stack pointer."""
    tool = hardware.toolchain
    if hardware.core == "avr":
        tools.run([tool.objcopy, "-O", "ihex", "-R", ".eeprom", "calls.elf", "calls.hex"], folder,
                  "reading the program")  # fmt: skip
        flash = ihex.flash_image(folder / "calls.hex")
        pushed = avr_stack.return_bytes(hardware.flash_bytes)
        entries = (_entry(program, root) for root in roots)
        return pushed + max(
            avr_stack.bound(flash, program.labels, entry, pushed).bytes for entry in entries
        )
    text = tools.run([tool.objdump, "-d", "--no-show-raw-insn", "calls.elf"], folder, "reading it")
    listing = thumb_stack.Listing.parse(text)
    return max(thumb_stack.bound(listing, root).bytes for root in roots)


def _entry(program: elf.Elf, name: str) -> int:
    found = [address for address, label in program.labels.items() if label == name]
    if not found:
        raise ThimbleError(f"the linked program has no function {name}")
    return found[0]
