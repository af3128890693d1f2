"""Options of conf, boards above all, with what their defaults lists bring."""

from copy import deepcopy
from functools import cache
from typing import Any

from omegaconf import DictConfig, OmegaConf

from pipeline import board
from pipeline.hardware import Hardware
from pipeline.home import ROOT

FILES = {path.stem: path.read_text() for path in (ROOT / "conf" / "hardware").glob("*.yaml")}
NAMES = sorted(name for name, text in FILES.items() if "\nname: " in text)
OTHER_NAMES = sorted(FILES.keys() - set(NAMES))
"""Of chips, for their common boards."""


@cache
def option(group: str, name: str) -> DictConfig:
    """The file of conf ``name`` over those it starts from, merged as Hydra does, but quickly."""
    own = OmegaConf.load(ROOT / "conf" / group / f"{name}.yaml")
    assert isinstance(own, DictConfig)
    merged = OmegaConf.create()
    for start in [*own.pop("defaults", ()), "_self_"]:
        if start == "_self_":
            merged.merge_with(own)
            continue
        ((key, chosen),) = {"@_here_": start}.items() if isinstance(start, str) else start.items()
        folder, _, place = str(key).partition("@")
        folder = folder[1:] if folder[:1] == "/" else f"{group}/{folder}".rstrip("/")
        found = deepcopy(option(folder, chosen))
        place = place or folder.rpartition("/")[2]
        merged.merge_with(found if place == "_here_" else {place: found})
    return merged


def node(name: str = "arduino", **changes: object) -> dict[str, Any]:
    """The board ``name`` as stages read it, with ``changes`` of its keys."""
    config = OmegaConf.create({"hardware": deepcopy(option("hardware", name))})
    config.hardware.update(changes)
    found = OmegaConf.to_container(config, resolve=True)
    assert isinstance(found, dict)
    return dict(found["hardware"])


def load_hardware(name: str = "arduino", **changes: object) -> Hardware:
    return board.hardware(node(name, **changes))
