"""Real range that int8 covers for each activation, from what calibration sees there.

Two walks over the calibration frames: the first finds the least and greatest value, the second
counts values in bins, from which a narrower range may follow that loses rare large values and
gains resolution for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import gcd

import numpy as np
import numpy.typing as npt
import torch

from pipeline.errors import ThimbleError
from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import Affine, FloatGraph
from pipeline.importers.scales import FIXED, range_affine

BINS = 2048
SHRINKS = np.linspace(1.0, 0.2, 81)

MOST_COUNTED = 1 << 18
"""Values of an activation in one batch."""

Counts = npt.NDArray[np.float64]


@dataclass
class Histogram:
    """Counts (BINS,) of values between ``low`` and ``high``; zeros, exact in any range, are left
    out."""

    low: float = np.inf
    high: float = -np.inf
    counts: Counts = field(default_factory=lambda: np.zeros(BINS))

    def widen(self, values: torch.Tensor) -> None:
        low, high = (float(each) for each in torch.aminmax(values))
        if not np.isfinite(low) or not np.isfinite(high):
            raise ThimbleError(
                "calibration: an activation is not finite: check the weights, and the input's range"
            )
        self.low, self.high = min(self.low, low), max(self.high, high)

    def count(self, values: torch.Tensor) -> None:
        """``some`` of ``values``."""
        if self.high > self.low:
            found = some(values).double()
            found = found[found != 0]
            bins = ((found - self.low) * (BINS / (self.high - self.low))).long()
            self.counts += torch.bincount(bins.clamp(0, BINS - 1), minlength=BINS).numpy()

    @property
    def centres(self) -> Counts:
        width = (self.high - self.low) / BINS
        return np.asarray(self.low + width * (np.arange(BINS) + 0.5))


def some(values: torch.Tensor) -> torch.Tensor:
    """Up to about MOST_COUNTED of ``values``, evenly spaced, from every channel; all of such a
    copy."""
    return values.reshape(-1)[:: spacing(values.numel(), values.shape[-1])].clone()


def spacing(size: int, channels: int) -> int:
    """Return a step that has no factor in common with ``channels``, else it would miss some."""
    step = max(1, size // MOST_COUNTED)
    while gcd(step, channels) != 1:
        step += 1
    return step


def minmax(seen: Histogram, percentile: float) -> Affine:
    """Return all that was seen."""
    return range_affine(seen.low, seen.high)


def by_percentile(seen: Histogram, percentile: float) -> Affine:
    """Return all but the (100 - percentile) % largest and smallest values."""
    total = seen.counts.sum()
    if not total:
        return minmax(seen, percentile)
    share = np.cumsum(seen.counts) / total
    tail = 1 - percentile / 100
    inside = np.flatnonzero((share >= tail) & (share - seen.counts / total <= 1 - tail))
    return range_affine(seen.centres[inside[0]], seen.centres[inside[-1]])


def by_error(seen: Histogram, percentile: float) -> Affine:
    """Return the least mean squared error of rounding and clipping what was seen."""
    best, least = minmax(seen, percentile), np.inf
    for shrink in SHRINKS:
        affine = range_affine(seen.low * shrink, seen.high * shrink)
        steps = np.rint(seen.centres / affine.scale) + affine.zero_point
        real = affine.scale * (np.clip(steps, -128, 127) - affine.zero_point)
        error = float((seen.counts * (real - seen.centres) ** 2).sum())
        if error < least:
            best, least = affine, error
    return best


OBSERVERS: Mapping[str, Callable[[Histogram, float], Affine]] = {
    "minmax": minmax,
    "percentile": by_percentile,
    "mse": by_error,
}


def groups(graph: FloatGraph, fixed: Mapping[str, Affine]) -> dict[str, str]:
    """Return for each activation the name of its group: those that have to share one quantization.

    Pools, padding and reshaping keep theirs, and states over calls. What is concatenated shares
    one where nothing else reads it; the others are requantized there, and so is what has a fixed
    quantization.
    """
    parent = {name: name for name in graph.shapes} | {of.made: of.read for of in graph.states}

    def root(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    def held(name: str) -> bool:
        return any(root(each) == root(name) for each in fixed)

    for node in graph.nodes:
        if node.keeps and len(node.inputs) == 1:
            parent[root(node.output)] = root(node.inputs[0])
    for node in graph.nodes:
        if isinstance(node, nodes.Concatenation):
            for name in node.inputs:
                alone = len(graph.readers(name)) == 1 and name not in graph.ends
                if alone and not held(name):
                    parent[root(name)] = root(node.output)
    return {name: root(name) for name in graph.shapes}


def calibrated(
    graph: FloatGraph,
    batches: Callable[[], Iterable[torch.Tensor]],
    entries: Mapping[str, Affine],
    observer: str,
    percentile: float,
) -> dict[str, Affine]:
    """Return a quantization for every activation.

    Args:
        batches: called for each walk; frames (n, *input shape) float32.
        entries: of the inputs.
        observer: a key of OBSERVERS. An output's range is always all that was seen: clipping
            logits could make two classes equal.
    """
    fixed = {node.output: FIXED[type(node)] for node in graph.nodes if type(node) in FIXED}
    for node in graph.nodes:  # of parts that are alike nothing is requantized
        if isinstance(node, nodes.Concatenation):
            of = {fixed.get(name) for name in node.inputs}
            if len(of) == 1 and (one := of.pop()):
                fixed[node.output] = one
    fixed |= entries
    member = groups(graph, fixed)
    seen = {group: Histogram() for group in member.values()}
    number, counted = 0, list[tuple[str, torch.Tensor]]()
    for number, frames in enumerate(batches(), 1):
        for name, values in graph.walk(frames):
            seen[member[name]].widen(values)
            if number == 1 and not graph.states:
                counted.append((name, some(values)))
    if observer != "minmax":
        walked = (each for frames in batches() for each in graph.walk(frames))
        one_batch = number == 1 and not graph.states  # what it gave is here still
        for name, values in counted if one_batch else walked:
            seen[member[name]].count(values)
    chosen = {group: OBSERVERS[observer](found, percentile) for group, found in seen.items()}
    for output in (member[name] for name in graph.outputs):
        chosen[output] = minmax(seen[output], percentile)
    chosen |= {member[name]: affine for name, affine in fixed.items()}
    return {name: chosen[group] for name, group in member.items()}
