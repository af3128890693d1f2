"""The types of the config: all options of a group share one dataclass, so typos are noticed.

``MISSING`` is a value that each option must give. ``None`` is a key of some options only; it is
left out of params.yaml, so that a key added here leaves the cache of other options valid.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

Until = Enum("Until", "fetch train prune quantize schedule generate build simulate measure")
Output = Enum("Output", "text json")
Tracking = Enum("Tracking", "background wait none")
WeightsIn = Enum("WeightsIn", "sram flash stream")
MemoryKind = Enum("MemoryKind", "ram rom stream block")
Layout = Enum("Layout", "slots contiguous")
TargetName = Enum("TargetName", "simulate host flash")


@dataclass
class Model:
    _target_: str = MISSING
    name: str = MISSING
    input_shape: list[int] | None = None
    classes: int | None = None
    channels: list[int] | None = None
    kernel: int | None = None
    input_pool: int | None = None


@dataclass
class Data:
    """``path``: a folder that holds the files already; relative to where the command is typed."""

    _target_: str = MISSING
    name: str = MISSING
    path: str = ""
    validation: int | None = None
    shape: list[int] | None = None
    classes: int | None = None
    train: int | None = None
    test: int | None = None
    seed: int | None = None


@dataclass
class Train:
    _target_: str = MISSING
    name: str = MISSING
    float_epochs: int | None = None
    quantized_epochs: int | None = None
    frozen_epochs: int | None = None
    float_rate: float | None = None
    quantized_rate: float | None = None
    frozen_rate: float | None = None
    batch: int | None = None
    rotation_degrees: float | None = None
    scale: float | None = None
    shear: float | None = None
    shift_pixels: float | None = None
    elastic_pixels: float | None = None
    flip: bool | None = None
    images: int | None = None
    trials: list[int] | None = None
    teacher_epochs: int | None = None
    copies: int | None = None
    strengths: list[float] | None = None
    last_strength: float | None = None
    label_share: float | None = None
    temperature: float | None = None
    weights: str | None = None


@dataclass
class Prune:
    _target_: str = MISSING
    name: str = MISSING
    ratio: float | None = None
    epochs: int | None = None
    rate: float | None = None
    batch: int | None = None


@dataclass
class Quantize:
    _target_: str = MISSING
    name: str = MISSING


@dataclass
class Memory:
    name: str = MISSING
    bytes: int = MISSING
    kind: MemoryKind = MemoryKind.ram
    granule_bytes: int = 1


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


@dataclass
class Strategy:
    _target_: str = MISSING
    name: str = MISSING
    layout: Layout = Layout.slots


@dataclass
class Target:
    """``images``: how many of the first test images the device runs; ``port``: of the board."""

    name: TargetName = MISSING
    images: int = 100
    port: str = ""


@dataclass
class Config:
    """The whole config. ``threads`` is part of a training's result; ``paper`` holds the rows of a
    published table that an experiment is compared with: {name, metric, paper}."""

    model: Model = field(default_factory=Model)
    data: Data = field(default_factory=Data)
    train: Train = field(default_factory=Train)
    prune: Prune = field(default_factory=Prune)
    quantize: Quantize = field(default_factory=Quantize)
    hardware: Hardware = field(default_factory=Hardware)
    strategy: Strategy = field(default_factory=Strategy)
    target: Target = field(default_factory=Target)
    seed: int = 1
    threads: int = 2
    until: Until = Until.measure
    output: Output = Output.text
    tracking: Tracking = Tracking.background
    paper: list[Any] = field(default_factory=list)


def register() -> None:
    ConfigStore.instance().store(name="schema", node=Config)
