"""hardware=host: the machine itself is the board, the native program the firmware."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline import prefix
from pipeline.hardware import Hardware
from pipeline.targets import elf, host, toolchain, tools
from pipeline.targets.runs import Images, Runs
from pipeline.targets.toolchain import Size

READ_ONLY = (".rodata", ".data.rel.ro")
DATA = (".data", ".bss")


def build(generated: Path, output: Path, hardware: Hardware) -> Size:
    """Compile ``generated`` into ``output``/host; sizes are of the network alone, without the C
    library. No stack is bounded: ``stack_path`` is empty.

    Raises:
        ThimbleError: the compiler is missing, the sources do not compile, or the linked arena is
            not the one that the header states.
    """
    tool = hardware.toolchain
    for command in (tool.compiler, tool.objdump):
        tools.require(command, tool.package, f"builds for {hardware.title}")
    toolchain.compile_program(generated, output / "host", tool)
    program, names = elf.read(output / "host", tool.objdump), prefix.of(generated)
    own = [s for s in program.symbols if s.name.startswith(names.word("nn_")) and s.bytes]
    ram = {s.name: s.bytes for s in own if s.section in DATA}
    flash = {s.name: s.bytes for s in own if s.is_object and s.section in READ_ONLY}
    code = {s.name: s.bytes for s in own if not s.is_object and s.section == ".text"}
    toolchain.check_arena(ram.get(names.word("nn_arena")), generated / names.header)
    statics = sum(ram.values())
    return Size(
        status="ok",
        flash_bytes=sum(flash.values()) + sum(code.values()),
        flash_limit_bytes=hardware.flash_bytes,
        statics_bytes=statics,
        stack_bound_bytes=0,
        stack_path=(),
        sram_bytes=statics,
        sram_limit_bytes=hardware.sram_bytes,
        compiler=tools.run([tool.compiler, "--version"], output, tool.compiler).splitlines()[0],
        ram_objects=ram,
        flash_objects=flash,
        functions=code,
        sections={},
    )


def run(build: Path, size: Mapping[str, Any], hardware: Hardware, images: Images) -> Runs:
    """target=simulate: the same program as target=host."""
    return Runs(host.infer(build / "host", images))
