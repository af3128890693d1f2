"""The types of the config: all options of a group share one dataclass, so typos are noticed.

Groups whose options name a class by ``_target_`` are open here: ``pipeline.runner.options`` holds
each option to the fields of its own class. ``MISSING`` is a value that each option must give.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING, OmegaConf

from pipeline.runner.options import CODE_GROUPS

Until = Enum("Until", "fetch train prune quantize schedule generate build simulate measure")
Output = Enum("Output", "text json")
Tracking = Enum("Tracking", "background wait none")
WeightsIn = Enum("WeightsIn", "sram flash external_flash stream")
ActivationsIn = Enum("ActivationsIn", "sram sdram")
MemoryKind = Enum("MemoryKind", "ram rom stream block")
UartLayout = Enum("UartLayout", "sr isr")
RegionKind = Enum("RegionKind", "ram rom")
CardTiming = Enum("CardTiming", "paper card")
TargetName = Enum("TargetName", "simulate host flash")


@dataclass
class Memory:
    name: str = MISSING
    bytes: int = MISSING
    kind: MemoryKind = MemoryKind.ram
    granule_bytes: int = 1


@dataclass
class Region:
    name: str = MISSING
    start: int = MISSING
    bytes: int = MISSING
    kind: RegionKind = RegionKind.ram
    reach: list[str] = field(default_factory=lambda: ["cpu", "dma"])
    external: bool = False
    read_cycles: int = 0


@dataclass
class FlashTiming:
    wait_states: int = 0
    read_bytes: int = 0
    line_bytes: int = 0
    instruction_lines: int = 0
    data_lines: int = 0
    instruction_ways: int = 0
    data_ways: int = 0
    unified: bool = False


@dataclass
class Card:
    bytes: int = 0
    block_bytes: int = 512
    timing: CardTiming = CardTiming.card
    paper_bytes_per_s: float = 4.85e6
    read_bytes_per_s: float = 0.0
    write_bytes_per_s: float = 0.0
    read_block_us: float = 0.0
    write_block_us: float = 0.0
    read_command_us: float = 0.0
    write_command_us: float = 0.0
    dma: bool = True
    streamed: bool = False
    endurance_cycles: float = 10_000
    first_failure_cycles: float = 0.0
    write_amplification: float = 1.0
    read_ma: float = 0.0
    write_ma: float = 0.0
    idle_ma: float = 0.0
    source: str = ""


@dataclass
class Uart:
    layout: UartLayout = UartLayout.isr
    base: int = 0
    hz: int = 0
    divided_hz: int = 0
    setup: list[list[int]] = field(default_factory=list)


@dataclass
class Power:
    supply_volt: float = MISSING
    active_ma: float = MISSING
    idle_ma: float = MISSING
    source: str = MISSING


@dataclass
class Toolchain:
    compiler: str = MISSING
    package: str = MISSING
    flags: list[str] = field(default_factory=list)
    objcopy: str = "objcopy"
    objdump: str = "objdump"


@dataclass
class Hardware:
    """The keys of ``pipeline.hardware.Hardware``, where they are explained."""

    name: str = MISSING
    title: str = MISSING
    core: str = MISSING
    part: str = MISSING
    clock_hz: int = MISSING
    sram_bytes: int = MISSING
    flash_bytes: int = MISSING
    weights_in: WeightsIn = MISSING
    streams_input: bool = MISSING
    stack_reserve_bytes: int = MISSING
    cycles_per_mac: float = MISSING
    toolchain: Toolchain = field(default_factory=Toolchain)
    power: Power = field(default_factory=Power)
    simulator: str = MISSING
    flasher: str = ""
    baud: int = 115200
    extra_memories: list[Memory] = field(default_factory=list)
    alignment_bytes: int = 1
    cpu: str = ""
    regions: list[Region] = field(default_factory=list)
    flash_timing: FlashTiming = field(default_factory=FlashTiming)
    activations_in: ActivationsIn = ActivationsIn.sram
    card: Card = field(default_factory=Card)
    uart: Uart = field(default_factory=Uart)


@dataclass
class Target:
    """``images``: how many of the first test images the device runs; ``port``: of the board;
    ``dry_run``: check what would be written and say the flasher's command, but write nothing."""

    name: TargetName = MISSING
    images: int = 100
    port: str = ""
    dry_run: bool = False


@dataclass
class Cache:
    """``fresh``: make everything anew, in an empty cache that this run alone uses. ``remote``: a
    DVC remote, a URL or a folder, to share results with other machines; ``THIMBLE_REMOTE`` is its
    default."""

    fresh: bool = False
    remote: str = ""


@dataclass
class Config:
    """The whole config. ``threads`` is part of a training's result; ``paper`` holds the rows of a
    published table that an experiment is compared with: {name, metric, paper}; ``study`` other
    values of keys that are planned for, too; ``figure`` what is drawn of an experiment."""

    model: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    train: dict[str, Any] = field(default_factory=dict)
    prune: dict[str, Any] = field(default_factory=dict)
    quantize: dict[str, Any] = field(default_factory=dict)
    hardware: Hardware = field(default_factory=Hardware)
    strategy: dict[str, Any] = field(default_factory=dict)
    target: Target = field(default_factory=Target)
    seed: int = 1
    threads: int = 2
    passes: list[str] = MISSING
    until: Until = Until.measure
    output: Output = Output.text
    tracking: Tracking = Tracking.background
    cache: Cache = field(default_factory=Cache)
    paper: list[Any] = field(default_factory=list)
    study: list[Any] = field(default_factory=list)
    figure: dict[str, Any] = field(default_factory=dict)


def register() -> None:
    schema = OmegaConf.structured(Config)
    for group in CODE_GROUPS:
        schema[group]._set_flag("struct", False)  # else Hydra refuses what the YAML leaves out
    ConfigStore.instance().store(name="schema", node=schema)
