"""Time and traffic by layer: what bounds each, and SwapNN's normalized arithmetic intensity."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.timing.simulate import Timeline


@dataclass
class Layer:
    """Of one inference.

    Attributes:
        compute_us, io_us: the core's and the card's time for the layer.
        read_bytes, write_bytes: moved from and to the card for it.
        intensity: N = (W / S_cpu) / (Q / S_io), the core's time over the card's (SwapNN, section
            2.1): more than 1 is compute-bound. None without traffic.
        bound: ``compute`` or ``io``.
    """

    layer: str
    macs: int
    compute_us: float = 0.0
    io_us: float = 0.0
    read_bytes: float = 0.0
    write_bytes: float = 0.0

    @property
    def intensity(self) -> float | None:
        return self.compute_us / self.io_us if self.io_us else None

    @property
    def bound(self) -> str:
        return "io" if self.io_us > self.compute_us else "compute"

    def content(self) -> dict[str, Any]:
        return asdict(self) | {"intensity": self.intensity, "bound": self.bound}


def by_layer(timeline: Timeline, graph: Graph) -> tuple[Layer, ...]:
    """One for each operator of ``graph``, in its order."""
    found = {op.name: Layer(op.name, op.macs(graph.tensors)) for op in graph.operators}
    took = np.bincount(timeline.task, timeline.stop - timeline.start, minlength=len(timeline.tasks))
    for task, us in zip(timeline.tasks, took, strict=True):
        layer = found.get(task.op)
        if layer is None:
            continue
        if task.kind == "compute":
            layer.compute_us += float(us) / timeline.frames
        elif task.kind in ("read", "write"):
            layer.io_us += float(us) / timeline.frames
            size = float(task.bytes.sum()) / timeline.frames
            layer.read_bytes += size if task.kind == "read" else 0.0
            layer.write_bytes += size if task.kind == "write" else 0.0
    return tuple(found.values())
