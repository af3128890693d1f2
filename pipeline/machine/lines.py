"""Say in which line of the generated C an instruction of the program is."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from pipeline import prefix
from pipeline.hardware import Toolchain
from pipeline.machine.program import Program
from pipeline.targets import tools


def lines(
    program: Program, generated: Path, tool: Toolchain, addresses: Iterable[int]
) -> dict[int, int]:
    """Compile the network once more, with what debuggers read, and look ``addresses`` up in its
    object. Those are left out that no function of it has."""
    places = dict[int, tuple[str, int]]()
    for at in addresses:
        if function := program.function_at(at):
            places[at] = function.name, at - function.address
    source = prefix.of(generated).source
    with tempfile.TemporaryDirectory(prefix="thimble.") as name:
        whole = Path(name) / "model.o"
        flags = [flag for flag in tool.flags if not flag.startswith("-Wl,")]
        command = [tool.compiler, *flags, "-g", "-c", source, "-o", str(whole)]
        tools.run(command, generated, "looking for lines of C")
        look = [tool.objdump.replace("objdump", "addr2line"), "-e", str(whole)]
        listed = [tool.objdump, "-h", "-w", str(whole)]
        sections = tools.run(listed, generated, "looking for lines of C").split()
        found = dict[int, int]()
        for at, (called, offset) in places.items():
            section = f".text.{called}"
            if section not in sections:  # the compiler may have one function for two alike
                continue
            asked = [*look, f"--section={section}", hex(offset)]
            said = tools.run(asked, generated, "looking for lines of C")
            line = said.strip().rpartition(":")[2].split()[0]
            if line.isdigit():
                found[at] = int(line)
    return found
