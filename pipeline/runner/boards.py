"""Boards that a command can name: those of ``conf/hardware``, the user's own too."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from hydra.core.global_hydra import GlobalHydra
from hydra.core.object_type import ObjectType
from hydra.types import RunMode
from omegaconf import OmegaConf

from pipeline import board
from pipeline.hardware import Hardware
from pipeline.metrics import NO_LIMIT


def every_board(words: Sequence[str] = ()) -> list[Hardware]:
    """Return all boards that this command can name, as ``words`` such as
    ``hardware.streams_input=true`` have them; of several names of a board one."""
    loader = _loader()
    # runner/allowed.py checks whole configs; nothing that these say is run
    load = inspect.unwrap(type(loader).load_configuration)
    found: dict[str, Hardware] = {}
    for name in _own(loader):
        chosen = load(loader, f"hardware/{name}", [], RunMode.RUN)
        for word in words:
            key, _, value = word.partition("=")
            OmegaConf.update(chosen, key, OmegaConf.create([value])[0], force_add=True)
        node: Any = OmegaConf.to_container(chosen.hardware, resolve=True)
        if node["core"] != "host":
            found.setdefault(node["name"], board.hardware(node))
    return list(found.values())


def with_room(result: Mapping[str, Any]) -> list[str]:
    """Name the three smallest boards whose SRAM and flash are a tenth more than the plan of
    ``result``, which does not fit, needs on its own."""
    loader, needs = _loader(), {m["name"]: m["needed_bytes"] for m in result["memories"]}
    flash = max(needs.get("flash", 0), result.get("planned_flash_bytes", 0))
    least, found = (1.1 * needs.get("sram", 0), 1.1 * flash), []
    for name, files in _own(loader).items():
        facts: dict[str, Any] = {}
        for file in files:
            facts |= loader.repository.load_config(file).config
        sizes = facts.get("sram_bytes", 0), facts.get("flash_bytes", 0)
        if name != result["hardware"] and NO_LIMIT > sizes[0] >= least[0] and sizes[1] >= least[1]:
            found.append((sizes, name))
    return [name for _, name in sorted(found)[:3]]


def _loader() -> Any:
    current = GlobalHydra.instance().hydra
    assert current is not None
    return current.config_loader


def _own(loader: Any) -> dict[str, list[str]]:
    """Return the files of each board, its chip's first; without other names of the same."""
    found = {}
    for name in loader.get_group_options("hardware", ObjectType.CONFIG):
        file = f"hardware/{name}"
        own = loader.repository.load_config(file)
        chips = [each.value for each in own.defaults_list if getattr(each, "group", "") == "chip"]
        if own.config:
            found[str(name)] = [*(f"hardware/chip/{chip}" for chip in chips), file]
    return found
