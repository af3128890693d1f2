"""Compile, link and size a folder of generated C: firmware whose memory is known.

Equal sources, options and compiler give equal bytes: sources are compiled by relative name, each
to an object of its own name, without debug information or build id.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pipeline import artifacts, ihex, prefix
from pipeline.codegen.constants import FAR
from pipeline.errors import ThimbleError
from pipeline.hardware import LPM_BYTES, Hardware, Toolchain
from pipeline.prefix import DEFAULTS, Prefix
from pipeline.targets import avr_stack, elf, parameters, tools

HOST = Toolchain(
    compiler="cc", package="gcc", flags=("-std=gnu99", "-O2", "-Wall", "-Wextra", "-Werror")
)
SANITIZERS = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")

STEPS = "steps.json"
"""File that says what each call that nn_invoke makes is part of, and what nn_feed does."""

PLACES = ("nn_parameters", "nn_invoke")
"""Symbols whose places simulators ask for, by these names whatever the prefix."""

_ARENA_MACRO = re.compile(r"^#define \w+_ARENA_BYTES (\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Size:
    """Memory that a firmware takes; ``status`` is ``infeasible`` when that is more than there is.

    Attributes:
        flash_bytes: code, constants and initial values.
        statics_bytes: ``.data``, ``.bss`` and ``.noinit``.
        stack_bound_bytes: deepest stack on any path, from the machine code.
        stack_path: the calls that lead there.
        sram_bytes: statics and stack bound.
        ram_objects, flash_objects, functions: bytes by symbol.
        sections: start and bytes by name, in the chip's own addresses; of ``PLACES`` too.
        code: start and bytes of each function, but the compiler's own on an AVR, where a
            simulator asks for them.
        outside: bytes used and available by memory outside of the chip, where any is used.
        steps: of ``steps.json``, empty for sources that say nothing of it.
        where, resource, needed_bytes, available_bytes, advice: as of plan.fit.Fit; empty
            when it fits.
    """

    status: str
    flash_bytes: int
    flash_limit_bytes: int
    statics_bytes: int
    stack_bound_bytes: int
    stack_path: tuple[str, ...]
    sram_bytes: int
    sram_limit_bytes: int
    compiler: str
    ram_objects: dict[str, int]
    flash_objects: dict[str, int]
    functions: dict[str, int]
    sections: dict[str, tuple[int, int]]
    code: dict[str, tuple[int, int]] = field(default_factory=dict)
    outside: dict[str, tuple[int, int]] = field(default_factory=dict)
    steps: dict[str, Any] = field(default_factory=dict)
    where: str = ""
    resource: str = ""
    needed_bytes: int = 0
    available_bytes: int = 0
    advice: str = field(default="")


def build(generated: Path, output: Path, hardware: Hardware) -> Size:
    """Compile ``generated`` for the board and natively into ``output``; judge what it takes.

    Writes ``firmware.elf``, ``firmware.hex``, ``firmware.map`` and ``host``, and copies
    ``parameters.hex`` where there is one: all that a target needs.

    Raises:
        ThimbleError: a tool is missing, the sources do not compile, the compiler has put tables
            of its own into RAM, or the stack has no bound. Not when the firmware is too large.
    """
    tool = hardware.toolchain
    for command in (tool.compiler, tool.objcopy, tool.objdump):
        tools.require(command, tool.package, f"builds for {hardware.title}")
    with host_meanwhile(generated, output / "host"):
        compile_program(generated, output / "firmware.elf", tool)
        copy = [tool.objcopy, "-O", "ihex", "-R", ".eeprom", "firmware.elf", "firmware.hex"]
        tools.run(copy, output, "writing firmware.hex")
    if (generated / parameters.NAME).exists():
        content = (generated / parameters.NAME).read_bytes()
        artifacts.write_bytes(output / parameters.NAME, content)
    program = elf.read(output / "firmware.elf", tool.objdump)
    names = prefix.of(generated)
    check_ram(program, generated / names.header, names)
    size = measure(program, output / "firmware.hex", hardware, names)
    known = (generated / STEPS).exists()
    return replace(size, steps=artifacts.read_json(generated / STEPS) if known else {})


def build_host(generated: Path, output: Path, *, sanitize: bool = False) -> None:
    """The same sources as a native program; ``sanitize`` adds ASan and UBSan, which abort."""
    tools.require(HOST.compiler, HOST.package, "builds the native program")
    compile_program(generated, output, HOST, SANITIZERS if sanitize else ())


@contextmanager
def host_meanwhile(generated: Path, output: Path) -> Iterator[None]:
    """``build_host`` beside what is done inside, whose error comes first."""
    with ThreadPoolExecutor(1) as pool:
        host = pool.submit(build_host, generated, output)
        yield
        host.result()


def compile_program(
    generated: Path, output: Path, tool: Toolchain, more: tuple[str, ...] = ()
) -> None:
    """Compile every ``*.c`` of ``generated`` and link them to ``output``, whole or not at all."""
    flags = (*tool.flags, *more)
    with objects(generated, output.parent, tool.compiler, flags) as folder:
        link(folder, output, tool.compiler, flags)


@contextmanager
def objects(generated: Path, output: Path, compiler: str, flags: Sequence[str]) -> Iterator[Path]:
    """Yield a folder, for a while, with an object of every ``*.c`` of ``generated``."""
    sources = sorted(file.name for file in generated.glob("*.c"))
    if not sources:
        raise ThimbleError(f"{generated} has no C sources: run stage generate")
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output, prefix=".build.") as name:
        folder = Path(name).resolve()
        for source in sources:
            command = [compiler, *flags, "-I.", "-c", source, "-o", str(folder / f"{source}.o")]
            tools.run(command, generated, f"compiling {source}")
        yield folder


def link(folder: Path, output: Path, compiler: str, flags: Sequence[str]) -> None:
    """Link the objects in ``folder`` to the program ``output``; beside firmware goes its map."""
    names = sorted(file.name for file in folder.glob("*.o"))
    mapped = ("-Wl,-Map=program.map",) * (output.suffix == ".elf")
    tools.run(
        [compiler, *flags, *names, *mapped, "-o", "program"], folder, f"linking {output.name}"
    )
    if mapped:
        shutil.move(folder / "program.map", output.with_suffix(".map"))
    shutil.move(folder / "program", output)


def check_ram(program: elf.Elf, header: Path, names: Prefix = DEFAULTS) -> None:
    """Compilers fold constants into RAM silently; here that is an error that names them. Every
    object the generator puts there has the prefix ``names``."""
    named = sum(symbol.bytes for symbol in program.ram_objects)
    foreign = [s for s in program.ram_objects if not s.name.startswith(names.word("nn_"))]
    said = [f"{s.name} ({s.bytes} B)" for s in foreign]
    if program.statics_bytes - named > 1:  # the linker rounds .data up to a word
        said.append(f"{program.statics_bytes - named} B without a name, e.g. a string")
    if said:
        raise ThimbleError(
            f"the compiler put {', '.join(said)} into RAM: declare it PROGMEM or static nn_..."
        )
    linked = (s.bytes for s in program.ram_objects if s.name == names.word("nn_arena"))
    check_arena(next(linked, None), header)


def check_arena(linked: int | None, header: Path) -> None:
    """Raises ThimbleError where ``header`` says another NN_ARENA_BYTES than what is ``linked``."""
    found = _ARENA_MACRO.search(header.read_text()) if header.exists() else None
    stated = int(found[1]) if found else None
    if stated is None or linked != stated:
        raise ThimbleError(
            f"the linked nn_arena has {linked} B, {header.name} says "
            f"{'nothing' if stated is None else stated} (NN_ARENA_BYTES): run stage generate again"
        )


def measure(program: elf.Elf, hexfile: Path, hardware: Hardware, names: Prefix = DEFAULTS) -> Size:
    """Sizes and the stack bound of a linked program, and whether the board has room for them."""
    pushed = avr_stack.return_bytes(hardware.flash_bytes)
    stack = avr_stack.bound(ihex.flash_image(hexfile), program.labels, return_bytes=pushed)
    compiler = hardware.toolchain.compiler
    largest = max(program.ram_objects, key=lambda s: s.bytes, default=None)
    size = Size(
        status="ok",
        flash_bytes=program.flash_bytes,
        flash_limit_bytes=hardware.flash_bytes,
        statics_bytes=program.statics_bytes,
        stack_bound_bytes=stack.bytes,
        stack_path=stack.path,
        sram_bytes=program.statics_bytes + stack.bytes,
        sram_limit_bytes=hardware.sram_bytes,
        compiler=tools.run([compiler, "--version"], hexfile.parent, compiler).splitlines()[0],
        ram_objects={s.name: s.bytes for s in program.ram_objects},
        flash_objects=_by_name(program, is_object=True),
        functions=_by_name(program, is_object=False),
        code={s.name: (s.address, s.bytes) for s in program.symbols
              if s.section == ".text" and s.bytes and not s.is_object and _of_network(s.name)},
        sections={s.name: (s.address, s.bytes) for s in program.sections.values()
                  if s.name in (".text", *elf.RAM_SECTIONS)}
        | {place: (s.address, s.bytes) for s in program.symbols for place in PLACES
           if s.name == names.word(place)},
    )  # fmt: skip
    if size.sram_bytes > size.sram_limit_bytes:
        return infeasible(
            size, "SRAM", size.sram_bytes, size.sram_limit_bytes,
            f"{largest.name if largest else 'the stack'} and a stack of {stack.bytes} B "
            f"({' > '.join(stack.path)})",
            "try strategy=herringbone, hardware.weights_in=flash or a smaller model",
        )  # fmt: skip
    if size.flash_bytes > size.flash_limit_bytes:
        parts = {**size.flash_objects, **size.functions}
        return infeasible(
            size, "flash", size.flash_bytes, size.flash_limit_bytes,
            max(parts, key=lambda name: parts[name], default="the program"),
            "try strategy.layout=contiguous (no address tables) or a smaller model",
        )  # fmt: skip
    ends = {s.address + s.bytes: s.name for s in program.symbols
            if s.section == ".text" and s.is_object and s.bytes
            and not s.name.startswith(names.word(FAR))}  # fmt: skip
    if (last := max(ends, default=0)) > LPM_BYTES:
        return infeasible(
            size, "flash for constants, which LPM reads,", last, LPM_BYTES, ends[last],
            "try a smaller model",
        )  # fmt: skip
    return size


def save(size: Size, path: Path) -> None:
    artifacts.write_json(path, asdict(size))


def _by_name(program: elf.Elf, *, is_object: bool) -> dict[str, int]:
    text = (s for s in program.symbols if s.section == ".text" and s.bytes)
    return {s.name: s.bytes for s in text if s.is_object == is_object}


def _of_network(function: str) -> bool:
    """Not one of the compiler's library, which the caller's cycles include."""
    return not function.startswith(("__", "mem"))


def infeasible(
    size: Size, resource: str, needed: int, available: int, where: str, advice: str
) -> Size:
    """``size`` with the verdict that ``resource`` is exceeded."""
    return replace(
        size,
        status="infeasible",
        resource=resource,
        needed_bytes=needed,
        available_bytes=available,
        where=where,
        advice=advice,
    )
