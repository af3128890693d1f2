"""The machines that QEMU simulates Cortex-M cores in: FPGA images for Arm's MPS2 board.

Memory maps: QEMU, docs/system/arm/mps2.rst; Arm application notes AN385, AN386, AN500, AN505.
A machine has more memory than a board: the firmware protects what the board does not have.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware

DESK_OFFSET = 0x300000
OUTSIDE_BYTES = 0x800000
"""Bytes of the machine's third memory, of 16 MiB, for each kind of memory outside of a chip."""
DESK_BYTES = 0x4000


@dataclass(frozen=True)
class Machine:
    """
    Attributes:
        name: QEMU's.
        flash_start, ram_start: at least 4 MiB each; the vector table is read from ``flash_start``.
        timer: a CMSDK APB timer's registers.
        tick_ns: what it counts.
        outside_start: a memory of 16 MiB that stands for those outside of the chip; 0: none.
    """

    name: str
    flash_start: int
    ram_start: int
    timer: int
    tick_ns: int
    outside_start: int = 0

    @property
    def desk_start(self) -> int:
        """Beyond any board's RAM: the harness's buffers."""
        return self.ram_start + DESK_OFFSET

    @property
    def outside_ram_start(self) -> int:
        return self.outside_start + OUTSIDE_BYTES


def _plain(name: str, outside_start: int = 0x21000000) -> Machine:
    return Machine(name, 0x00000000, 0x20000000, 0x40000000, 40, outside_start)


MACHINES = {
    "cortex-m0plus": _plain("mps2-an385"),  # a Cortex-M3: QEMU has no M0+ with so much memory
    "cortex-m3": _plain("mps2-an385"),
    "cortex-m4": _plain("mps2-an386"),
    "cortex-m7": _plain("mps2-an500", 0x60000000),
    "cortex-m33": Machine("mps2-an505", 0x10000000, 0x38000000, 0x50000000, 50, 0x80000000),
}
"""Machines by ``hardware.cpu``. The Cortex-M33 starts in secure state, at secure addresses."""


def machine(hardware: Hardware) -> Machine:
    """Raises ThimbleError when there is none for the core, or none so large."""
    if hardware.cpu not in MACHINES:
        raise ThimbleError(
            f"hardware {hardware.name}: no simulated machine for cpu {hardware.cpu!r}; have "
            f"{', '.join(MACHINES)}"
        )
    if max(hardware.sram_bytes, hardware.flash_bytes) > DESK_OFFSET:
        raise ThimbleError(
            f"hardware {hardware.name}: {max(hardware.sram_bytes, hardware.flash_bytes)} B of "
            f"memory, the simulated machine has {DESK_OFFSET} B of each kind: set "
            "hardware.sram_bytes and hardware.flash_bytes, or target=host"
        )
    return MACHINES[hardware.cpu]
