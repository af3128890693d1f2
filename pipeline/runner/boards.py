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


def named(name: str, words: Sequence[str] = ()) -> Hardware:
    """Return a board as ``words`` such as ``hardware.streams_input=true`` have it."""
    loader = _loader()
    # runner/allowed.py checks whole configs; nothing that these say is run
    load = inspect.unwrap(type(loader).load_configuration)
    chosen = load(loader, f"hardware/{name}", [f"++{word}" for word in words], RunMode.RUN)
    node: Any = OmegaConf.to_container(chosen.hardware, resolve=True)
    return board.hardware(node)


def with_room(result: Mapping[str, Any]) -> list[str]:
    """Name the three smallest boards whose SRAM and flash are a tenth more than the plan of
    ``result``, which does not fit, needs on its own."""
    needs = {m["name"]: m["needed_bytes"] for m in result["memories"]}
    flash = 1.1 * max(needs.get("flash", 0), result.get("planned_flash_bytes", 0))
    found = [
        (size, name)
        for name, size in sizes().items()
        if NO_LIMIT > size[0] >= 1.1 * needs.get("sram", 0) and size[1] >= flash
    ]
    return [name for _, name in sorted(found)[:3]]


def _loader() -> Any:
    current = GlobalHydra.instance().hydra
    assert current is not None
    return current.config_loader


def sizes() -> dict[str, tuple[int, int]]:
    """Return SRAM and flash of each board that a command can name, 0 where neither its file nor its
    chip's says it; without other names of the same."""
    loader, found = _loader(), {}
    load = loader.repository.load_config
    for name in map(str, loader.get_group_options("hardware", ObjectType.CONFIG)):
        own = load(f"hardware/{name}")
        chips = [each.value for each in own.defaults_list if getattr(each, "group", "") == "chip"]
        facts: dict[str, Any] = {}
        for file in (*(f"hardware/chip/{chip}" for chip in chips), f"hardware/{name}"):
            facts |= load(file).config
        if own.config:
            found[name] = facts.get("sram_bytes", 0), facts.get("flash_bytes", 0)
    return found
