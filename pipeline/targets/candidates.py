"""A network's plans for many boards, which are candidates for it."""

from __future__ import annotations

from functools import cache
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
from pipeline.plan.fit import needs, roomy
from pipeline.targets.planned import planned
from pipeline.verdict import timed

DATA, FRAMES = Path("data/dataset.npz"), 8
Row = dict[str, Any]
STRATEGY = {"_target_": "pipeline.strategies.auto.Auto"}


@cache
def _network(folder: Path) -> tuple[Graph, IntArray | None]:
    """Read the graph in ``folder`` and some of the data there: what is 0 in these kernels skip."""
    graph, images = Graph.load(folder), read_npz(folder / DATA).get("train_images", np.zeros(0))
    if len(graph.inputs) > 1 or not len(images):
        return graph, None
    tensor, some = graph.tensors[graph.input], images[:: max(1, len(images) // FRAMES)]
    return graph, stored(reshaped(some, tensor), tensor).astype(np.int64)


def row(folder: Path, hardware: Hardware) -> Row:
    """Say what the fastest plan that fits ``hardware`` needs of the network in ``folder``, or the
    one of least memory, and how long it takes; ``why`` there is none."""
    graph, frames = _network(folder)
    about = {"board": hardware.name, "title": hardware.title,
             "sram_limit_bytes": hardware.sram_bytes, "flash_limit_bytes": hardware.flash_bytes,
             }  # fmt: skip
    try:
        plan = config.instantiate(STRATEGY).plan(graph, hardware)
    except ThimbleError as error:
        return {**about, "fits": False, "why": str(error)}
    if plan.on_card:
        us = timed(roomy(plan), graph, hardware)["makespan_us"] / plan.frames
    else:
        some = frames if frames is not None and skips(plan, graph, hardware) else None
        zeros = {} if some is None else zero_shares(graph, some)
        us = modelled(plan, graph, hardware, zeros)["modelled_us"]
    sizes = planned(plan, graph, hardware)
    memories = needs(plan, hardware)
    memories["flash"] = max(memories.get("flash", 0), sizes.get("planned_flash_bytes", 0))
    over = {name: need - hardware.bytes_of(name) for name, need in memories.items()}
    lacks = {name: bytes_ for name, bytes_ in over.items() if bytes_ > 0}
    spent = {"energy_uj": hardware.power.active_uj(us)} if hardware.power.active_ma else {}
    return {
        **about, "fits": not lacks, "strategy": plan.strategy.partition("/")[0], **sizes,
        "modelled_us": us, **spent, "needed_bytes": memories, "lacks_bytes": lacks,
    }  # fmt: skip
