"""The types of the config: all options of a group share one dataclass, so typos are noticed.

Groups whose options name a class by ``_target_`` are open here: ``pipeline.runner.options`` holds
each option to the fields of its own class. ``MISSING`` is a value that each option must give.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from omegaconf import MISSING, DictConfig, OmegaConf

from pipeline import hardware, home
from pipeline.runner.fields import structured

CODE_GROUPS = ("data", "frontend", "model", "train", "prune", "quantize", "strategy")
"""Groups whose ``_target_`` a stage imports."""

Until = Enum("Until", (home.IMPORT, *home.STAGES))  # type: ignore[misc]
Output = Enum("Output", "text json")
Tracking = Enum("Tracking", "background wait none")
PackageName = Enum("PackageName", "none arduino platformio cmake")
WeightsIn = Enum("WeightsIn", "flash sram")
TargetName = Enum("TargetName", "simulate host flash")
Checked = Enum("Checked", "outputs layers")
Hardware = structured(hardware.Hardware)


@dataclass
class Target:
    """Place where the firmware runs.

    Attributes:
        images: test images that run, the first ones.
        port: the board's serial port, such as /dev/ttyACM0.
        dry_run: check what would be written and say the command; write nothing.
        check: compare the outputs with the integer network's; with ``layers`` also each element
            that the images' inferences write, with the interpreter's.
    """

    name: TargetName = MISSING
    images: int = 100
    port: str = ""
    dry_run: bool = False
    check: Checked = Checked.outputs


@dataclass
class Cache:
    fresh: bool = False
    remote: str = ""


@dataclass
class Codegen:
    prefix: str = "nn"
    labels: list[str] = field(default_factory=list)


@dataclass
class Sliding:
    rows: int = 0


@dataclass
class Package:
    """A library for other build systems.

    Attributes:
        weights_in: where the library has its weights, whatever ``hardware.weights_in`` is.
        library: its name; empty: the network's.
        version: its version.
    """

    name: PackageName = MISSING
    weights_in: WeightsIn = WeightsIn.flash
    library: str = ""
    version: str = "1.0.0"


@dataclass
class Config:
    """The whole config; conf/config.yaml and the options say what its keys are. ``paper`` holds the
    rows of a published table that an experiment is compared with: {name, metric, paper}; ``study``
    other values of keys, for each of which a sweep has one more job; ``figure`` what is drawn."""

    model: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    frontend: dict[str, Any] = field(default_factory=dict)
    train: dict[str, Any] = field(default_factory=dict)
    prune: dict[str, Any] = field(default_factory=dict)
    quantize: dict[str, Any] = field(default_factory=dict)
    hardware: Hardware = field(default_factory=Hardware)  # type: ignore[valid-type]
    strategy: dict[str, Any] = field(default_factory=dict)
    target: Target = field(default_factory=Target)
    codegen: Codegen = field(default_factory=Codegen)
    sliding: Sliding = field(default_factory=Sliding)
    package: Package = field(default_factory=Package)
    seed: int = 1
    threads: int = 2
    passes: list[str] = MISSING
    until: Until = Until["measure"]
    output: Output = Output.text
    tracking: Tracking = Tracking.background
    cache: Cache = field(default_factory=Cache)
    paper: list[Any] = field(default_factory=list)
    study: list[Any] = field(default_factory=list)
    figure: dict[str, Any] = field(default_factory=dict)


@cache
def register() -> None:
    """Tell Hydra of the types, once."""
    schema = OmegaConf.structured(Config)
    for group in CODE_GROUPS:
        schema[group]._set_flag("struct", False)  # else Hydra refuses what the YAML leaves out
    ConfigStore.instance().store(name="schema", node=schema)


def composed(*words: str, hydra: bool = False, root: Path = home.ROOT) -> DictConfig:
    """Compose the config of the project in ``root`` for the command line ``words``; with Hydra's
    own part, if ``hydra``."""
    register()
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(root / "conf"), version_base="1.3"):
        return compose("config", list(words), return_hydra_config=hydra)


def plain(config: DictConfig) -> dict[str, Any]:
    """Return the values of a run's ``config``, without Hydra's own part."""
    own = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
    values: Any = OmegaConf.to_container(own, resolve=True, enum_to_str=True, throw_on_missing=True)
    return dict(values)
