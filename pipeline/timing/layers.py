"""Time and traffic by layer: what bounds each, and SwapNN's normalized arithmetic intensity."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.plan.rates import Rates, work
from pipeline.timing.simulate import Timeline

SLOW_CARD_FAST_CORE, FAST_CARD_SLOW_CORE = (480, 10), (64, 40)
"""MOP/s and MB/s of the paper's range of boards, section 2.1."""


@dataclass
class LayerTimes:
    """A layer's work, traffic and times in one inference.

    Attributes:
        work: multiply–accumulates; of pooling, the values it compares or adds.
        once_bytes: its input, weights and output, each moved once: SwapNN's Q.
        once_us: the card's time for these, without commands.
        compute_us, io_us: the core's and the card's time for the layer.
        read_bytes, write_bytes: moved from and to the card for it.
        bound, bound_once: ``compute`` or ``io``: which takes longer in this plan, and when all is
            moved once.
    """

    layer: str
    work: int
    once_bytes: int
    once_us: float
    compute_us: float = 0.0
    io_us: float = 0.0
    read_bytes: float = 0.0
    write_bytes: float = 0.0

    @property
    def bound(self) -> str:
        return "io" if self.io_us > self.compute_us else "compute"

    @property
    def bound_once(self) -> str:
        return "io" if self.once_us > self.compute_us else "compute"

    def intensity(self, mops: float, mb_per_s: float) -> float:
        """N = (W / S_cpu) / (Q / S_io): the core's time over the card's (SwapNN, section 2.1).

        Args:
            mops: million operations a second. One is one of ``work``.
            mb_per_s: million bytes a second.
        """
        return (self.work / mops) / (self.once_bytes / mb_per_s)

    def content(self) -> dict[str, Any]:
        return asdict(self) | {
            "mops": self.work / 1e6,
            "once_mb": self.once_bytes / 1e6,
            "bound": self.bound,
            "bound_once": self.bound_once,
            "intensity_low": self.intensity(SLOW_CARD_FAST_CORE[0], SLOW_CARD_FAST_CORE[1]),
            "intensity_high": self.intensity(FAST_CARD_SLOW_CORE[0], FAST_CARD_SLOW_CORE[1]),
        }


def by_layer(timeline: Timeline, graph: Graph, rates: Rates) -> tuple[LayerTimes, ...]:
    """Return one for each operator of ``graph``, in its order."""
    found = {op.name: _layer(op, graph, rates) for op in graph.operators}
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


def _layer(op: Operator, graph: Graph, rates: Rates) -> LayerTimes:
    """Biases don't count: the paper's traffic has none."""
    tensors = graph.tensors
    read = sum(tensors[name].bytes for name in (*op.inputs, *op.parameters[:1]))
    written = tensors[op.output].bytes
    once_us = read * rates.read.byte_us + written * rates.write.byte_us
    return LayerTimes(op.name, work(op, graph), int(read + written), once_us)
