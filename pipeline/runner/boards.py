"""Boards that a command can name: those of ``conf/hardware``, the user's own too."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hydra.core.global_hydra import GlobalHydra
from hydra.core.object_type import ObjectType
from hydra.types import RunMode
from omegaconf import OmegaConf

from pipeline import board
from pipeline.hardware import Hardware
from pipeline.metrics import NO_LIMIT


def every_board(words: Sequence[str] = ()) -> Iterator[Hardware]:
    """Yield all boards that this command can name, those with much SRAM first, as ``words`` such as
    ``hardware.streams_input=true`` have them; of several names of a board one."""
    loader = _loader()
    # runner/allowed.py checks whole configs; nothing that these say is run
    load = inspect.unwrap(type(loader).load_configuration)
    sizes, found = _sizes(loader), set[str]()
    for name in sorted(sizes, key=lambda each: -sizes[each][0]):
        chosen = load(loader, f"hardware/{name}", [], RunMode.RUN)
        for word in words:
            key, _, value = word.partition("=")
            OmegaConf.update(chosen, key, OmegaConf.create([value])[0], force_add=True)
        node: Any = OmegaConf.to_container(chosen.hardware, resolve=True)
        if node["core"] != "host" and node["name"] not in found:
            found.add(node["name"])
            yield board.hardware(node)


def with_room(result: Mapping[str, Any]) -> list[str]:
    """Name the three smallest boards whose SRAM and flash are a tenth more than the plan of
    ``result``, which does not fit, needs on its own."""
    loader, needs = _loader(), {m["name"]: m["needed_bytes"] for m in result["memories"]}
    flash = max(needs.get("flash", 0), result.get("planned_flash_bytes", 0))
    least, found = (1.1 * needs.get("sram", 0), 1.1 * flash), []
    for name, sizes in _sizes(loader).items():
        if name != result["hardware"] and NO_LIMIT > sizes[0] >= least[0] and sizes[1] >= least[1]:
            found.append((sizes, name))
    return [name for _, name in sorted(found)[:3]]


def _loader() -> Any:
    current = GlobalHydra.instance().hydra
    assert current is not None
    return current.config_loader


def _sizes(loader: Any) -> dict[str, tuple[int, int]]:
    """Return SRAM and flash of each board, 0 where neither its file nor its chip's says it; without
    other names of the same."""
    load, found = loader.repository.load_config, {}
    for name in map(str, loader.get_group_options("hardware", ObjectType.CONFIG)):
        own = load(f"hardware/{name}")
        chips = [each.value for each in own.defaults_list if getattr(each, "group", "") == "chip"]
        facts: dict[str, Any] = {}
        for file in (*(f"hardware/chip/{chip}" for chip in chips), f"hardware/{name}"):
            facts |= load(file).config
        if own.config:
            found[name] = facts.get("sram_bytes", 0), facts.get("flash_bytes", 0)
    return found
