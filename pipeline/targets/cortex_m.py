"""Build firmware for a simulated Cortex-M, whose memory is known, from generated C.

The program is placed as ``firmware/ports/cortex_m/link.ld`` says: code in flash; in RAM the stack
lies below the statics, so that a stack too deep leaves the RAM instead of running into data. It is
linked twice, because the stack gets all that the statics leave. Constants or the arena may lie in
memories outside of the chip instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline import prefix
from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware, MemoryRegion
from pipeline.targets import card, cortex_m_board, elf, machines, thumb_stack, toolchain, tools
from pipeline.targets.avr_stack import Bound
from pipeline.targets.machines import DESK_BYTES, OUTSIDE_BYTES, Machine
from pipeline.targets.toolchain import Size

SCRIPT = "link.ld"
CODE = (".text", ".ARM.exidx")
WEIGHTS = ".weights"
ARENA = ".arena"
STATICS = (".data", ARENA, ".bss")
LEAST_BYTES = 32
REGION_LEVELS = 5
"""Regions that the firmware has for its RAM and, one each, for memories outside of the chip: each
says three more bits of the RAM's size."""


def build(generated: Path, output: Path, hardware: Hardware) -> Size:
    """Compile ``generated`` for the simulated machine and natively into ``output``.

    Writes ``firmware.elf``, ``firmware.map`` and ``host``; where the board's UART is known also
    ``board.elf``, ``firmware.hex`` and ``firmware.bin``. Sizes count the simulated machine's
    harness.

    Raises:
        ThimbleError: a tool is missing, there is no machine for the core, the sources do not
            compile, the stack has no bound, or the linked arena is not what the header states.
            Not when the firmware is too large.
    """
    tool = hardware.toolchain
    machine = machines.machine(hardware)
    for command in (tool.compiler, tool.objdump):
        tools.require(command, tool.package, f"builds for {hardware.title}")
    flags = (*tool.flags, f"-DPORT_TIMER={machine.timer:#x}u", f"-DPORT_TICK={machine.tick_ns}u",
             *card.flags(hardware, machine.tick_ns))  # fmt: skip
    target = output / "firmware.elf"
    with (
        toolchain.host_meanwhile(generated, output / "host"),
        toolchain.objects(generated, output, tool.compiler, flags) as objects,
    ):
        common = (*flags, "-nostartfiles", f"-T{(generated / SCRIPT).resolve()}")
        stack_bytes = _linked(objects, target, common, machine, hardware)
        board = cortex_m_board.own(hardware)
        if board is not None:
            cortex_m_board.recompile(generated, objects, flags, hardware)
            stack = max(0, stack_bytes - cortex_m_board.MORE_BYTES)
            places = placed(board, hardware, ram_bytes(hardware), stack)
            toolchain.link(objects, output / "board.elf", tool.compiler, (*common, *places))
            cortex_m_board.write_images(output, hardware)
    program = elf.read(target, tool.objdump)
    toolchain.check_arena(program.size(ARENA), generated / prefix.of(generated).header)
    bound = _bound(target, tool.objdump)
    if board is not None and hardware.card.driver:  # whose handler may be the deeper one
        bound = max(bound, _bound(output / "board.elf", tool.objdump), key=lambda each: each.bytes)
    return _judged(program, bound, stack_bytes, hardware, output)


def _bound(program: Path, objdump: str) -> Bound:
    command = [objdump, "-d", "--no-show-raw-insn", program.name]
    listing = tools.run(command, program.parent, "reading the program")
    return thumb_stack.interrupted(thumb_stack.Listing.parse(listing), "port_reset")


def _linked(
    objects: Path, target: Path, flags: Sequence[str], machine: Machine, hardware: Hardware
) -> int:
    """Links ``objects`` to ``target``; bytes of the stack, which gets what the statics leave."""
    tool, available = hardware.toolchain, ram_bytes(hardware)
    first = (*flags, *placed(machine, hardware, available, 0))
    toolchain.link(objects, target, tool.compiler, first)
    statics = _statics(elf.read(target, tool.objdump), hardware)
    stack_bytes = max(0, available - statics) // LEAST_BYTES * LEAST_BYTES  # keeps alignment
    places = placed(machine, hardware, available, stack_bytes)
    toolchain.link(objects, target, tool.compiler, (*flags, *places))
    return stack_bytes


def ram_bytes(hardware: Hardware) -> int:
    """Return how much of ``hardware.sram_bytes`` the memory protection can grant: a multiple of
    32 B, of more where the RAM is large."""
    outside = (_weights_outside(hardware), _activations_outside(hardware))
    levels = REGION_LEVELS - sum(region is not None for region in outside)
    bits = (hardware.sram_bytes - 1).bit_length()
    granule = max(LEAST_BYTES, 1 << max(0, bits - 3 * levels))
    return hardware.sram_bytes // granule * granule


def flash_granted(flash_bytes: int) -> int:
    """The least that holds ``flash_bytes`` and is one region of the memory protection: eighths of a
    power of two. That the program fits the flash itself is checked when it is linked."""
    size = max(LEAST_BYTES, 1 << (flash_bytes - 1).bit_length())
    part = size // 8 if size >= 8 * LEAST_BYTES else size
    return -(-flash_bytes // part) * part


def placed(machine: Machine, hardware: Hardware, available: int, stack_bytes: int) -> Sequence[str]:
    """Return the linker's options that give ``link.ld`` its addresses and sizes."""
    symbols = {
        "flash_start": machine.flash_start,
        "flash_bytes": flash_granted(hardware.flash_bytes),
        "ram_start": machine.ram_start,
        "ram_bytes": available,
        "stack_bytes": stack_bytes,
        "desk_start": machine.desk_start,
        "desk_bytes": DESK_BYTES,
        "weights_start": machine.outside_start,
        "weights_bytes": _granted(_weights_outside(hardware)),
        "activations_start": machine.outside_ram_start,
        "activations_bytes": _granted(_activations_outside(hardware)),
    }
    return [f"-Wl,--defsym=port_{name}={value:#x}" for name, value in symbols.items()]


def _weights_outside(hardware: Hardware) -> MemoryRegion | None:
    return hardware.external("rom") if hardware.weights_in == "external_flash" else None


def _activations_outside(hardware: Hardware) -> MemoryRegion | None:
    return hardware.external("ram") if hardware.activations_in == "sdram" else None


def _granted(region: MemoryRegion | None) -> int:
    """Return the bytes that the machine has of ``region``; 0 without one."""
    return min(region.bytes, OUTSIDE_BYTES) if region else 0


def _statics(program: elf.Elf, hardware: Hardware) -> int:
    """Return their bytes in the chip, with what lies between them."""
    names = [name for name in STATICS if name != ARENA or not _activations_outside(hardware)]
    found = [program.sections[name] for name in names if name in program.sections]
    used = [section for section in found if section.bytes]
    if not used:
        return 0
    return max(s.address + s.bytes for s in used) - min(s.address for s in used)


def _outside(program: elf.Elf, hardware: Hardware) -> dict[str, tuple[int, int]]:
    """Return bytes used and available in each memory outside of the chip, by the memory's name.

    Raises:
        ThimbleError: when the board has room for it, but not the simulated machine.
    """
    found = {}
    for section, region in (
        (WEIGHTS, _weights_outside(hardware)),
        (ARENA, _activations_outside(hardware)),
    ):
        if region is None:
            continue
        used = program.size(section)
        if OUTSIDE_BYTES < used <= region.bytes:
            raise ThimbleError(
                f"hardware {hardware.name}: {used:,} B in {region.name}, the simulated machine has "
                f"{OUTSIDE_BYTES:,} B for it: try target=host with hardware=host"
            )
        found[region.name] = (used, region.bytes)
    return found


def _judged(
    program: elf.Elf, bound: Bound, stack_bytes: int, hardware: Hardware, output: Path
) -> Size:
    compiler = hardware.toolchain.compiler
    code = CODE if _weights_outside(hardware) else (*CODE, WEIGHTS)
    in_flash = [s for s in program.symbols if s.section in (".text", WEIGHTS) and s.bytes]
    ram = {s.name: s.bytes for s in program.symbols if s.section in STATICS and s.bytes}
    statics = _statics(program, hardware)
    sections = {name: (program.sections[name].address, program.sections[name].bytes)
                for name in STATICS if name in program.sections}  # fmt: skip
    if _activations_outside(hardware):  # after the RAM in what the firmware leaves behind
        sections[ARENA] = (ram_bytes(hardware), program.size(ARENA))
    size = Size(
        status="ok",
        flash_bytes=program.size(*code, ".data"),
        flash_limit_bytes=hardware.flash_bytes,
        statics_bytes=statics,
        stack_bound_bytes=bound.bytes,
        stack_path=bound.path,
        sram_bytes=statics + bound.bytes,
        sram_limit_bytes=hardware.sram_bytes,
        compiler=tools.run([compiler, "--version"], output, compiler).splitlines()[0],
        ram_objects=ram,
        flash_objects={s.name: s.bytes for s in in_flash if s.is_object},
        functions={s.name: s.bytes for s in in_flash if not s.is_object},
        code={s.name: (s.address, s.bytes) for s in in_flash if not s.is_object},
        sections=sections | {"stack": (0, stack_bytes)},
        outside=_outside(program, hardware),
    )  # fmt: skip
    if size.sram_bytes > ram_bytes(hardware):
        largest = max(ram, key=lambda name: ram[name], default="the stack")
        return toolchain.infeasible(
            size, "SRAM", size.sram_bytes, size.sram_limit_bytes,
            f"{largest} and a stack of {bound.bytes} B ({' > '.join(bound.path)})",
            "try another strategy, hardware.weights_in=flash or a smaller model",
        )  # fmt: skip
    for name, (used, available) in size.outside.items():
        if used > available:
            return toolchain.infeasible(
                size, name, used, available, "what lies outside of the chip",
                "try fewer channels, prune=magnitude or a larger board",
            )  # fmt: skip
    if size.flash_bytes > size.flash_limit_bytes:
        parts = {**size.flash_objects, **size.functions}
        smaller = "hardware.kernels=small, " if hardware.kernels == "fast" else ""
        return toolchain.infeasible(
            size, "flash", size.flash_bytes, size.flash_limit_bytes,
            max(parts, key=lambda name: parts[name], default="the program"),
            f"try {smaller}fewer channels, prune=magnitude or a larger board",
        )  # fmt: skip
    return size
