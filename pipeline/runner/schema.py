"""The types of the config: all options of a group share one dataclass, so typos are noticed.

Groups whose options name a class by ``_target_`` are open here: ``pipeline.runner.options`` holds
each option to the fields of its own class. ``MISSING`` is a value that each option must give.
"""

from __future__ import annotations

from dataclasses import field, is_dataclass, make_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, get_origin

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from omegaconf import MISSING, DictConfig, OmegaConf

from pipeline import hardware, home
from pipeline.runner.fields import structured

CODE_GROUPS = ("data", "frontend", "model", "train", "prune", "quantize", "strategy")
"""Groups whose ``_target_`` a stage imports."""
WORDS: Any = Enum


def _typed(title: str, /, **keys: Any) -> Any:
    """A dataclass of ``keys``: each has its default, or the type of what each config must give; of
    containers the type alone, and nothing in them."""
    parts: list[Any] = []
    for key, given in keys.items():
        make: Any = get_origin(given) or (given if is_dataclass(given) else None)
        if make:
            parts.append((key, given, field(default_factory=make)))
        else:
            must = isinstance(given, type)
            parts.append((key, given, MISSING) if must else (key, type(given), given))
    return make_dataclass(title, parts)


Config = _typed(
    "Config",
    **dict.fromkeys(CODE_GROUPS, dict[str, Any]),
    hardware=structured(hardware.Hardware),
    target=_typed(
        "Target", name=WORDS("Name", "simulate host flash"), images=100, port="", dry_run=False
    ),
    codegen=_typed("Codegen", prefix="nn", labels=list[str]),
    sliding=_typed("Sliding", windows=1, rows=1),
    package=_typed(
        "Package",
        name=WORDS("Name", "none arduino platformio cmake"),
        weights_in=WORDS("WeightsIn", "flash sram")["flash"],
        library="",
        version="1.0.0",
    ),
    seed=1,
    threads=2,
    passes=list[str],
    until=WORDS("Until", home.STAGES)["measure"],
    output=WORDS("Output", "text json")["text"],
    tracking=WORDS("Tracking", "background wait none")["background"],
    cache=_typed("Cache", fresh=False, remote=""),
    paper=list[Any],  # rows of a published table to compare with: {name, metric, paper}
    study=list[Any],  # other values of keys, for each of which a sweep has one more job
    figure=dict[str, Any],  # what is drawn of it
)
"""The whole config; conf/config.yaml and the options say what its keys are."""


def register() -> None:
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
    """The values of a run's ``config``, without Hydra's own part."""
    own = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
    values: Any = OmegaConf.to_container(own, resolve=True, enum_to_str=True, throw_on_missing=True)
    return dict(values)
