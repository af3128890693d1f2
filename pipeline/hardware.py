"""A board, as the planner and the toolchain see it. Filled from the config group ``hardware``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import ceil
from typing import Literal

from pipeline import sealing
from pipeline.errors import ThimbleError
from pipeline.sealing import Security

LPM_BYTES = 1 << 16
"""Bytes of an AVR's flash that its plain load from there (LPM) reaches; ELPM reaches all of it."""
LARGEST_ON_AVR = (1 << 15) - 1
"""Bytes of an array in C, whose differences of addresses have 16 bits."""


@dataclass(frozen=True)
class Memory:
    """A region a plan may address.

    Attributes:
        name: how plans refer to it, e.g. ``sram``, ``flash``, ``stream``.
        bytes: its size.
        kind: ``ram`` is read and written; ``rom`` only read; ``stream`` is input that arrives
            once, in address order, and cannot be read again; ``frame`` holds the input, outside of
            what is planned, and is only read; ``block`` is a card.
        granule_bytes: the smallest unit an engine reads or writes: 1 for a CPU, 512 for a card, of
            memory that transfers reach beside a data cache a line of it.
    """

    name: str
    bytes: int
    kind: Literal["ram", "rom", "stream", "frame", "block"] = "ram"
    granule_bytes: int = 1


@dataclass(frozen=True)
class MemoryRegion:
    """Memory as the chip or the board has it.

    Attributes:
        start: its first address, for the core.
        kind: ``ram`` or ``rom``.
        reach: who reads and writes it without the core's help, e.g. ``dma``.
        external: on the board, not in the chip.
        read_cycles: of the core, for a read that no cache holds; 0: not known, not counted.
    """

    name: str
    start: int
    bytes: int
    kind: Literal["ram", "rom"] = "ram"
    reach: tuple[str, ...] = ("cpu", "dma")
    external: bool = False
    read_cycles: int = 0


@dataclass(frozen=True)
class FlashTiming:
    """Cost of reading the program's memory, for a modelled latency.

    Attributes:
        wait_states: cycles of a read that no cache holds.
        read_bytes: bytes that one read brings; 0: not known.
        line_bytes: bytes of a line of either cache, which holds several reads.
        instruction_lines, data_lines: lines of that cache; 0: there is none.
        instruction_ways, data_ways: associativity of that cache; 0: fully associative.
        unified: one cache holds instructions and data.
    """

    wait_states: int = 0
    read_bytes: int = 0
    line_bytes: int = 0
    instruction_lines: int = 0
    data_lines: int = 0
    instruction_ways: int = 0
    data_ways: int = 0
    unified: bool = False


@dataclass(frozen=True)
class Uart:
    """The serial line to the computer, of boards whose start-up code is this project's own.

    Attributes:
        layout: register layout, ``firmware/ports/cortex_m/uart_<layout>.h``; ST's are called by the
            name of their status register.
        base: address of the first register; 0: no firmware for the board itself is built.
        hz: the core's clock after reset, and after ``setup``.
        divided_hz: clock of the baud rate's divisor; 0: ``hz``.
        setup: writes that switch on clock and pins: (address, bits to clear, bits to set) each; one
            that clears what it sets waits for these bits. A register at an odd address has 8 bits,
            at another that is no multiple of 4, 16.
        boot: what the chip's boot ROM asks for before a program, by ``boot_<boot>.h`` beside it.
    """

    layout: Literal["sr", "isr", "pl011", "nrf", "sercom", "lpuart"] = "isr"
    base: int = 0
    hz: int = 0
    divided_hz: int = 0
    setup: tuple[tuple[int, int, int], ...] = ()
    boot: str = ""


@dataclass(frozen=True)
class Power:
    """A documented supply model: energy is time in a state times that state's power.

    Attributes:
        supply_volt: volts.
        active_ma: supply current while the core computes; 0: not known, no energy is reported.
        idle_ma: supply current while the core waits.
        source: where these figures are from.
    """

    supply_volt: float
    active_ma: float
    idle_ma: float
    source: str

    def active_uj(self, time_us: float) -> float:
        """Energy of computing for ``time_us``: volts times milliamperes are milliwatts."""
        return self.supply_volt * self.active_ma * time_us / 1e3


@dataclass(frozen=True)
class Card:
    """Block storage beside the chip; one of 0 bytes is none.

    Attributes:
        bytes: its size.
        block_bytes: the smallest unit that is read or written.
        timing: ``card`` charges blocks and commands. ``paper`` charges bytes alone, at
            ``paper_bytes_per_s``, as SwapNN does (docs/decisions/0011).
        paper_bytes_per_s: the only cost under ``timing=paper``.
        read_bytes_per_s, write_bytes_per_s: the rate within a block.
        read_block_us, write_block_us: time that each block takes besides.
        read_command_us, write_command_us: time that each transfer of adjacent blocks takes besides.
        dma: transfers run beside computing; else they take the core's time.
        line_bytes: line of the core's data cache; 1: no cache between core and transfers.
        streamed: bytes of a block pass one by one, so that no block has to fit the SRAM.
        driver: driver in firmware/storage for the board itself; empty: there is none.
        driver_bytes: SRAM that a program which swaps takes besides the arena and
            ``stack_reserve_bytes``: what driver and track keep, and their deeper stack.
        endurance_cycles: writes of a cell until half of the cells have failed.
        first_failure_cycles: writes of a cell until the first one fails.
        erase_bytes: unit that the card erases at once.
        read_ma, write_ma, idle_ma: supply current while it reads, writes, waits; board's voltage.
        source: where these figures are from.
        engine: what makes tags and encrypts: the core, or engines of a part, in plans alone.
        security: what is on it has CRCs (``none``), tags (``integrity``), or is ``encrypted``, too.
    """

    bytes: int = 0
    block_bytes: int = 512
    timing: Literal["paper", "card"] = "card"
    paper_bytes_per_s: float = 4.85e6
    read_bytes_per_s: float = 0.0
    write_bytes_per_s: float = 0.0
    read_block_us: float = 0.0
    write_block_us: float = 0.0
    read_command_us: float = 0.0
    write_command_us: float = 0.0
    dma: bool = True
    line_bytes: int = 1
    streamed: bool = False
    driver: str = ""
    driver_bytes: int = 0
    endurance_cycles: float = 10_000
    first_failure_cycles: float = 0.0
    erase_bytes: int = 1 << 22
    read_ma: float = 0.0
    write_ma: float = 0.0
    idle_ma: float = 0.0
    source: str = ""
    engine: sealing.Engine = "core"
    security: Security = "unchecked"

    @property
    def kept_bytes(self) -> int:
        """SRAM beside the arena and ``stack_reserve_bytes`` in a program that swaps."""
        return self.driver_bytes + (sealing.kept_bytes(self.block_bytes) if self.sealed else 0)

    @property
    def sealed(self) -> bool:
        """Check whether what is on it lies there in pieces with tags."""
        return self.security != "unchecked" and not self.streamed

    @property
    def summed(self) -> bool:
        """The chip keeps a sum of each block."""
        return self.security == "none" and self.streamed

    def sums_bytes(self, sizes: Iterable[float]) -> int:
        """SRAM of the sums of blocks of feature maps that take ``sizes`` bytes."""
        if not self.summed:
            return 0
        return sealing.SUM_BYTES * sum(ceil(size / self.block_bytes) for size in sizes)

    @property
    def keyed(self) -> bool:
        """The chip has a key, and counts its starts."""
        return self.security in sealing.KEYED


@dataclass(frozen=True)
class Toolchain:
    """The compiler for the board and the options it is called with.

    Attributes:
        compiler, objcopy, objdump: programs, found in ``PATH``.
        package: Debian packages that have them, for a message where they are missing.
        flags: options of every compilation and of the link.
    """

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
        weights_in: where weights live while the network runs: ``sram``, ``flash``,
            ``external_flash`` (the first external region of kind ``rom``) or ``stream`` (sent
            over the line before the first image, then kept in SRAM).
        activations_in: where the arena lies: ``sram``, or ``sdram`` (the first external region of
            kind ``ram``).
        streams_input: the input arrives element by element and need not be held whole.
        stack_reserve_bytes: what the planner keeps free for the stack and the harness; the build
            replaces it by the real bound.
        cycles_per_mac: for estimates before anything is run.
        alignment_bytes: every activation's address is a multiple of this.
        cpu: the core's own name, for the compiler and the simulator, where ``core`` names a family.
        kernels: ``fast``, the core's own where it has some; ``portable`` ones are slower, and take
            less flash; ``small``: those that take the least.
        regions: memories behind ``sram_bytes`` and ``flash_bytes``: name, start, bytes, kind, …
        flash_timing: where a modelled latency counts the flash's waits.
        simulator: ``simavr``, ``qemu``, or ``native`` for this computer.
        flasher: the command that writes the firmware to the board; ``{part}``, ``{port}``, and one
            of the files ``{hex}``, ``{bin}`` and ``{elf}`` are filled in.
        platformio: PlatformIO's name of it, PLATFORM/BOARD; empty: it has none.
        baud: bits a second of the serial line.
        uart: how a firmware for the board itself reaches the computer.
        wait_bytes: after so many bytes of the input the host waits until the board has used them;
            0: it never waits.
        card: block storage that plans may swap with, if it has any bytes.
        input_again: the input lies in flash or a frame buffer, where rows of it can be read at any
            time, again and again; whatever ``streams_input`` says.
    """

    name: str
    title: str
    core: str
    part: str
    clock_hz: int
    sram_bytes: int
    flash_bytes: int
    weights_in: Literal["sram", "flash", "external_flash", "stream"]
    streams_input: bool
    stack_reserve_bytes: int
    cycles_per_mac: float
    toolchain: Toolchain
    power: Power
    simulator: str
    flasher: str = ""
    platformio: str = ""
    baud: int = 115200
    wait_bytes: int = 0
    alignment_bytes: int = 1
    cpu: str = ""
    kernels: Literal["fast", "portable", "small"] = "fast"
    regions: tuple[MemoryRegion, ...] = field(default=())
    flash_timing: FlashTiming = field(default_factory=FlashTiming)
    activations_in: Literal["sram", "sdram"] = "sram"
    card: Card = field(default_factory=Card)
    uart: Uart = field(default_factory=Uart)
    input_again: bool = False

    def __post_init__(self) -> None:
        for key in ("clock_hz", "sram_bytes", "flash_bytes", "baud"):
            if getattr(self, key) < 1:
                raise ThimbleError(f"hardware.{key}={getattr(self, key)}: it is at least 1")
        if self.wait_bytes < 0:
            raise ThimbleError(f"hardware.wait_bytes={self.wait_bytes}: it is at least 0")
        sealing.check(self.card.security, self.name, self.card.bytes, self.cpu or self.core)

    @property
    def sealing_cost(self) -> sealing.Cost:
        """Return the cost of sealing what passes between chip and card."""
        return sealing.cost(self.cpu or self.core, self.card.security, self.card.engine)

    @property
    def memories(self) -> tuple[Memory, ...]:
        line = self.card.line_bytes if self.card.bytes else 1
        outside = (
            Memory(r.name, r.bytes, r.kind, line if r.kind == "ram" else 1)
            for r in self.regions
            if r.external
        )
        card = Memory("card", self.card.bytes, "block", self.card.block_bytes)
        return (
            Memory("sram", self.sram_bytes, granule_bytes=line),
            Memory("flash", self.flash_bytes, "rom"),
            *outside,
            *((card,) if self.card.bytes else ()),
        )

    def bytes_of(self, name: str) -> int:
        """Look up how large the memory ``name`` is."""
        return next(memory.bytes for memory in self.memories if memory.name == name)

    @property
    def storage(self) -> Memory | None:
        """The memory that plans swap with."""
        return next((memory for memory in self.memories if memory.kind == "block"), None)

    @property
    def ram_in_one_piece(self) -> int:
        """Bytes of the chip's RAM from its first region on; 0 where regions are not known."""
        inside = [region for region in self.regions if not region.external]
        end = inside[0].start if inside else 0
        for region in inside:
            if region.kind == "ram" and region.start == end:
                end += region.bytes
        return end - inside[0].start if inside else 0

    def external(self, kind: Literal["ram", "rom"]) -> MemoryRegion | None:
        """Return the board's memory of ``kind`` outside of the chip: the first, if there is one."""
        return next((r for r in self.regions if r.external and r.kind == kind), None)

    @property
    def activation_memory(self) -> str:
        """The memory that a plan puts its arena in.

        Raises:
            ThimbleError: when the board does not have what ``activations_in`` names.
        """
        if self.activations_in == "sram":
            return "sram"
        return self._outside("ram", "activations_in=sdram", "hardware.activations_in=sram")

    @property
    def stack_memory(self) -> str:
        """The memory that the stack, and all that the firmware keeps besides, lie in."""
        return "sram"

    @property
    def weight_memory(self) -> str:
        """The memory that weights are read from while the network runs.

        Raises:
            ThimbleError: when the board does not have what ``weights_in`` names.
        """
        if self.weights_in == "external_flash":
            return self._outside("rom", "weights_in=external_flash", "hardware.weights_in=flash")
        if self.weights_in == "stream" and not self.streams_input:
            raise ThimbleError(
                f"hardware {self.name} takes no parameters over its line, "
                "hardware.weights_in=stream: set hardware.weights_in=flash or sram"
            )
        return "flash" if self.weights_in == "flash" else "sram"

    def _outside(self, kind: Literal["ram", "rom"], asked: str, instead: str) -> str:
        region = self.external(kind)
        if region is None:
            raise ThimbleError(
                f"hardware {self.name} has no such memory outside of its chip, hardware.{asked}: "
                f"set {instead}"
            )
        return region.name
