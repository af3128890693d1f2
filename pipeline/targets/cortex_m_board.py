"""The firmware of a Cortex-M board itself: the network as it was compiled for the simulated
machine, with a harness that speaks over the board's UART, at the board's own addresses."""

from __future__ import annotations

from pathlib import Path

from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware, Uart
from pipeline.targets import tools
from pipeline.targets.machines import Machine

HARNESS = (
    "main.c",
    "start_cortex_m.c",
    "protect_cortex_m.c",
    "cortex_m_device.c",
    "stm32f7_device.c",
)
"""Sources that are compiled anew."""

DRIVERS = {"": (), "stm32f7": ("-DSTORAGE_STM32F7",)}
"""Compiler flags for a card, by ``hardware.card.driver``."""

ELF, BIN = "board.elf", "firmware.bin"

MORE_BYTES = 32
"""Bytes by which its statics may exceed the simulated machine's: a word, and alignment."""


def own(hardware: Hardware) -> Machine | None:
    """Return where the board's memories begin; None where no firmware for it is built: its UART is
    not known, or it would need memories outside of the chip, which nothing switches on yet."""
    outside = hardware.weights_in == "external_flash" or hardware.activations_in == "sdram"
    inside = [region for region in hardware.regions if not region.external]
    flash = next((region for region in inside if region.kind == "rom"), None)
    if not hardware.uart.base or outside or flash is None:
        return None
    return Machine("", flash.start, inside[0].start, 0, 0)


def recompile(generated: Path, objects: Path, flags: tuple[str, ...], hardware: Hardware) -> None:
    """The harness for the board, in place of the simulated machine's in the folder ``objects``."""
    for name in HARNESS:
        if not (generated / name).exists():
            continue  # without a card
        given = (*flags, *uart_flags(hardware), *driver_flags(hardware))
        command = [hardware.toolchain.compiler, *given, "-I.", "-c", name]
        command += ["-o", str(objects / f"{name}.o")]
        tools.run(command, generated, f"compiling {name} for the board")


def driver_flags(hardware: Hardware) -> tuple[str, ...]:
    """
    Raises:
        ThimbleError: for a driver that there is not.
    """
    name = hardware.card.driver
    if name not in DRIVERS:
        known = ", ".join(filter(None, DRIVERS))
        raise ThimbleError(f"hardware.card.driver={name}: have {known}, or none")
    return DRIVERS[name]


def uart_flags(hardware: Hardware) -> tuple[str, ...]:
    uart = hardware.uart
    setup = ",".join(f"{{{a:#x}u,{c:#x}u,{s:#x}u}}" for a, c, s in uart.setup)
    return (
        f"-DPORT_UART={uart.base:#x}u",
        f'-DPORT_UART_LAYOUT="uart_{uart.layout}.h"',
        f"-DPORT_UART_DIVISOR={divisor(uart, hardware.baud)}u",
        f"-DTHIMBLE_WAIT_BYTES={hardware.wait_bytes}",
        f"-DPORT_UART_SETUP={setup}",
        *((f'-DPORT_BOOT="boot_{uart.boot}.h"',) if uart.boot else ()),
    )


DIVISIONS = {"sr": 1.0, "isr": 1.0, "pl011": 4.0, "lpuart": 1 / 16}
"""Divisors of one cycle a bit, by layout: a bit takes at least sixteen cycles."""
SHARE = 1 << 20
"""Of the other layouts: a register has the rate's share of the clock, in so many parts."""


def divisor(uart: Uart, baud: int) -> int:
    """Return what has the UART come nearest to ``baud``: a divisor of its clock, or a share of it.

    Raises:
        ThimbleError: when none comes within 2 % of ``baud``: a byte's last bit would be read at the
            wrong time.
    """
    clock = uart.divided_hz or uart.hz
    if uart.layout in DIVISIONS:
        scale = DIVISIONS[uart.layout]
        found = max(1, round(clock * scale / baud))
        rate, possible = clock * scale / found, found >= 16 * scale
    else:
        found = round(SHARE * baud / clock)
        rate, possible = clock * found / SHARE, found < SHARE >> 4
    if not possible or abs(rate / baud - 1) > 0.02:
        raise ThimbleError(
            f"hardware.baud={baud}: the board's UART, clocked by {clock} Hz, has no such rate: "
            "try 115200"
        )
    return found


def write_images(output: Path, hardware: Hardware) -> None:
    """``board.elf`` in the folder ``output`` as what flashers take."""
    tool = hardware.toolchain
    tools.require(tool.objcopy, tool.package, f"builds for {hardware.title}")
    for kind, name in (("ihex", "firmware.hex"), ("binary", BIN)):
        tools.run([tool.objcopy, "-O", kind, ELF, name], output, name)
