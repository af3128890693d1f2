"""Options of conf, boards above all, with what their defaults lists bring."""

from copy import deepcopy
from functools import cache
from typing import Any

from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf

from pipeline import board
from pipeline.hardware import Hardware
from pipeline.home import ROOT

FILES = {path.stem: path.read_text() for path in (ROOT / "conf" / "hardware").glob("*.yaml")}
NAMES = sorted(name for name, text in FILES.items() if "\nname: " in text)
OTHER_NAMES = sorted(FILES.keys() - set(NAMES))
"""Of chips, for their common boards."""


@cache
def option(name: str) -> DictConfig:
    """``name`` is an option without its ending, ``hardware/arduino``; groups are its keys."""
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        config = compose(name)
    OmegaConf.set_struct(config, False)
    return config


def node(name: str = "arduino", **changes: object) -> dict[str, Any]:
    """The board ``name`` as stages read it, with ``changes`` of its keys."""
    config = deepcopy(option(f"hardware/{name}"))
    config.hardware.update(changes)
    found = OmegaConf.to_container(config, resolve=True)
    assert isinstance(found, dict)
    return dict(found["hardware"])


def load_hardware(name: str = "arduino", **changes: object) -> Hardware:
    return board.hardware(node(name, **changes))
