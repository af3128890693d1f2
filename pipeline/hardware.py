"""A board, as the planner and the toolchain see it. Filled from the config group ``hardware``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Memory:
    """A region a plan may address.

    Attributes:
        name: how plans refer to it, e.g. ``sram``, ``flash``, ``stream``.
        bytes: its size.
        kind: ``ram`` is read and written; ``rom`` only read; ``stream`` is input that arrives
            once, in address order, and cannot be read again; ``block`` is a card.
        granule_bytes: the smallest unit an engine reads or writes: 1 for a CPU, 512 for a card.
    """

    name: str
    bytes: int
    kind: Literal["ram", "rom", "stream", "block"] = "ram"
    granule_bytes: int = 1


@dataclass(frozen=True)
class Region:
    """Memory as the chip or the board has it.

    Attributes:
        start: its first address, for the core.
        kind: ``ram`` or ``rom``.
        reach: who reads and writes it without the core's help, e.g. ``dma``.
        external: on the board, not in the chip.
    """

    name: str
    start: int
    bytes: int
    kind: Literal["ram", "rom"] = "ram"
    reach: tuple[str, ...] = ("cpu", "dma")
    external: bool = False


@dataclass(frozen=True)
class FlashTiming:
    """What reading the program's memory costs, for a modelled latency.

    Attributes:
        wait_states: cycles of a read that no cache holds.
        read_bytes: of one read; 0: not known.
        line_bytes: of a line of either cache, which holds several reads.
        instruction_lines, data_lines: lines of the caches.
    """

    wait_states: int = 0
    read_bytes: int = 0
    line_bytes: int = 0
    instruction_lines: int = 0
    data_lines: int = 0


@dataclass(frozen=True)
class Power:
    """A documented supply model: energy is time in a state times that state's power."""

    supply_volt: float
    active_ma: float
    idle_ma: float
    source: str

    def active_uj(self, time_us: float) -> float:
        """Energy of computing for ``time_us``: volts times milliamperes are milliwatts."""
        return self.supply_volt * self.active_ma * time_us / 1e3


@dataclass(frozen=True)
class Toolchain:
    """The compiler for the board and the options it is called with."""

    compiler: str
    package: str
    flags: tuple[str, ...] = ()
    objcopy: str = "objcopy"
    objdump: str = "objdump"


@dataclass(frozen=True)
class Hardware:
    """One board.

    Attributes:
        name: the YAML's name.
        title: what a person calls it.
        core: selects ``firmware/ports/<core>`` and the kernels.
        part: the compiler's name of the chip.
        clock_hz: core clock.
        sram_bytes: the sum of the on-chip data memories a program may use.
        flash_bytes: program memory a program may use.
        weights_in: where weights live while the network runs: ``sram``, ``flash`` or ``stream``
            (sent over the line before the first image, then kept in SRAM).
        streams_input: the input arrives element by element and need not be held whole.
        stack_reserve_bytes: what the planner keeps free for the stack and the harness; the build
            replaces it by the real bound.
        cycles_per_mac: for estimates before anything is run.
        alignment_bytes: what the address of every activation is a multiple of.
        cpu: the core's own name, for the compiler and the simulator, where ``core`` names a family.
        regions: the memory behind the sizes above, for cores whose simulator keeps to it.
        flash_timing: where a modelled latency counts the flash's waits.
    """

    name: str
    title: str
    core: str
    part: str
    clock_hz: int
    sram_bytes: int
    flash_bytes: int
    weights_in: Literal["sram", "flash", "stream"]
    streams_input: bool
    stack_reserve_bytes: int
    cycles_per_mac: float
    toolchain: Toolchain
    power: Power
    simulator: str
    flasher: str = ""
    baud: int = 115200
    extra_memories: tuple[Memory, ...] = field(default=())
    alignment_bytes: int = 1
    cpu: str = ""
    regions: tuple[Region, ...] = field(default=())
    flash_timing: FlashTiming = field(default_factory=FlashTiming)

    @property
    def memories(self) -> tuple[Memory, ...]:
        return (
            Memory("sram", self.sram_bytes),
            Memory("flash", self.flash_bytes, "rom"),
            *self.extra_memories,
        )

    @property
    def activation_memory(self) -> str:
        """The memory that a plan puts its arena in."""
        return "sram"

    @property
    def stack_memory(self) -> str:
        """The memory that the stack, and all that the firmware keeps besides, lie in."""
        return "sram"

    @property
    def weight_memory(self) -> str:
        """The memory that weights are read from while the network runs."""
        return "flash" if self.weights_in == "flash" else self.activation_memory
