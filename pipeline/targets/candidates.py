"""A network's plans for many boards, which are candidates for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import config
from pipeline.artifacts import read_npz
from pipeline.errors import ThimbleError
from pipeline.frames import reshaped, stored
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.hardware import Hardware
from pipeline.kernels import modelled, skips, zero_shares
from pipeline.plan.fit import needs
from pipeline.targets.planned import planned
from pipeline.verdict import timed

DATA, FRAMES = Path("data/dataset.npz"), 8
Row = dict[str, Any]
STRATEGY = {"_target_": "pipeline.strategies.auto.Auto"}
NO_MATTER = (
    *("name", "title", "part", "clock_hz", "sram_bytes", "flash_bytes", "regions", "power"),
    *("toolchain", "simulator", "flasher", "platformio", "baud", "uart", "cycles_per_mac"),
)
"""Fields of a board on which no plan depends that has room."""


def planned_in(folder: Path, every: Iterable[Hardware]) -> Iterator[Row]:
    """Yield a row of each board for the graph in ``folder`` and the data there."""
    graph, frames = Graph.load(folder), None
    images = read_npz(folder / DATA).get("train_images", np.zeros(0))
    if len(graph.inputs) == 1 and len(images):
        tensor, some = graph.tensors[graph.input], images[:: max(1, len(images) // FRAMES)]
        frames = stored(reshaped(some, tensor), tensor).astype(np.int64)
    yield from rows(graph, every, frames)


def rows(graph: Graph, every: Iterable[Hardware], frames: IntArray | None = None) -> Iterator[Row]:
    """Yield a row of each board. A plan is made once for boards that differ in memory and clock
    alone, if it has room on all of them and the largest comes first. ``frames``: what kernels may
    skip is what is 0 in these."""
    alike: dict[str, tuple[Hardware, Row]] = {}
    for hardware in every:
        key = repr({k: v for k, v in asdict(hardware).items() if k not in NO_MATTER})
        known = key in alike and hardware.sram_bytes <= alike[key][0].sram_bytes
        if not known or not _row(hardware, *alike[key])["fits"]:
            alike[key] = hardware, _planned(graph, hardware, frames)
        yield _row(hardware, *alike[key])


def _planned(graph: Graph, hardware: Hardware, frames: IntArray | None) -> Row:
    """Return what a plan needs and how long it takes; ``why`` there is none."""
    try:
        plan = config.instantiate(STRATEGY).plan(graph, hardware)
    except ThimbleError as error:
        return {"why": str(error)}
    if plan.on_card:
        us = timed(plan, graph, hardware)["makespan_us"] / plan.frames
    else:
        some = frames if frames is not None and skips(plan, graph, hardware) else None
        zeros = {} if some is None else zero_shares(graph, some)
        us = modelled(plan, graph, hardware, zeros)["modelled_us"]
    about = planned(plan, graph, hardware)
    memories = needs(plan, hardware)
    memories["flash"] = max(memories.get("flash", 0), about.get("planned_flash_bytes", 0))
    name = plan.strategy.partition("/")[0]
    return {"strategy": name, **about, "modelled_us": us, "needed_bytes": memories}


def _row(hardware: Hardware, planned_for: Hardware, plan: Row) -> Row:
    """Return the row of ``hardware`` with the ``plan`` made for a board that is alike."""
    about = {"board": hardware.name, "title": hardware.title, "fits": "why" not in plan,
             "sram_limit_bytes": hardware.sram_bytes, "flash_limit_bytes": hardware.flash_bytes,
             **plan}  # fmt: skip
    if "why" in plan:
        return about
    us = plan["modelled_us"] * planned_for.clock_hz / hardware.clock_hz
    spent = {"energy_uj": hardware.power.active_uj(us)} if hardware.power.active_ma else {}
    sizes = {memory.name: memory.bytes for memory in hardware.memories}
    over = {name: need - sizes[name] for name, need in plan["needed_bytes"].items()}
    lacks = {name: bytes_ for name, bytes_ in over.items() if bytes_ > 0}
    return {**about, "fits": not lacks, "modelled_us": us, **spent, "lacks_bytes": lacks}


def order(row: Row) -> tuple[Any, ...]:
    """Put those that fit first, the smallest part of them (SRAM, then flash), then those that lack
    least."""
    lacks = sum(row.get("lacks_bytes", {}).values())
    return not row["fits"], "why" in row, lacks, row["sram_limit_bytes"], row["flash_limit_bytes"]
