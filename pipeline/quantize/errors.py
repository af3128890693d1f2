"""The error of each tensor of an int8 network: ``quantization.csv``, and what to do about it.

Both networks get the same images. SQNR, the signal-to-quantization-noise ratio in dB, compares a
tensor with the float network's: 10 log10(sum x^2 / sum (x - s (q - z))^2). A layer's own is that of
the float layer on the integers that the int8 layer got: what the layers before it lost is left out.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from io import StringIO
from math import inf, log10, sqrt

from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.importers.deferred import torch
from pipeline.importers.float_graph import FloatGraph, Node

MOST_CLIPPED_PCT = 50.0
"""Share of a layer's error above which its range is to be widened."""
ENOUGH_DB = 30.0
"""From here on a layer's own error is a thousandth of its signal."""
FAR = 20.0
"""The largest value over the root mean square from which on a few values take most of a range."""


@dataclass(frozen=True)
class Row:
    """
    Attributes:
        tensor: what ``layer``, an ``operator`` of the float network, makes.
        sqnr_db, own_sqnr_db: inf where nothing differs.
        clipped_pct: part of the layer's own error where the integers are at an end of their range.
        crest: the largest value over the root mean square.
    """

    tensor: str
    layer: str
    operator: str
    sqnr_db: float
    own_sqnr_db: float
    clipped_pct: float
    crest: float


@dataclass
class _Sums:
    """Sums of squares over all frames, and the largest value."""

    wanted: float = 0.0
    noise: float = 0.0
    own: float = 0.0
    own_noise: float = 0.0
    clipped: float = 0.0
    elements: int = 0
    peak: float = 0.0

    def row(self, node: Node) -> Row:
        return Row(
            tensor=node.output,
            layer=node.name,
            operator=type(node).__name__,
            sqnr_db=_db(self.wanted, self.noise),
            own_sqnr_db=_db(self.own, self.own_noise),
            clipped_pct=100 * self.clipped / self.own_noise if self.own_noise else 0.0,
            crest=self.peak / sqrt(self.own / self.elements) if self.own else 0.0,
        )


def errors(floats: FloatGraph, graph: Graph, frames: Iterable[IntArray]) -> list[Row]:
    """Compare each operator of ``floats`` whose inputs and output ``graph`` has.

    Args:
        frames: (n, *input shape) each, integers as ``graph`` stores them; with states, of calls
            from the first one on.
    """
    known = graph.tensors
    found = {node: _Sums() for node in floats.nodes if {node.output, *node.inputs} <= known.keys()}
    for frame in frames:
        stored = graph.run(frame)
        real = {
            name: torch.from_numpy(known[name].scale[0] * (q - known[name].zero_point)).float()
            for name, q in stored.items()
        }
        given = torch.cat([real[name].flatten(1) for name in graph.inputs], 1)
        exact = floats.run(given)
        for node, sums in found.items():
            with torch.no_grad():
                own = node.evaluate([real[name] for name in node.inputs])
            made, q, dtype = real[node.output], stored[node.output], known[node.output].dtype
            squares = (own - made) ** 2
            ends = torch.from_numpy((q == dtype.minimum) | (q == dtype.maximum))
            sums.wanted += float((exact[node.output] ** 2).sum())
            sums.noise += float(((exact[node.output] - made) ** 2).sum())
            sums.own += float((own**2).sum())
            sums.own_noise += float(squares.sum())
            sums.clipped += float(squares[ends].sum())
            sums.elements += own.numel()
            sums.peak = max(sums.peak, float(own.abs().max()))
    return [sums.row(node) for node, sums in found.items()]


def _db(signal: float, noise: float) -> float:
    return 10 * log10(signal / noise) if signal and noise else inf if signal else 0.0


def to_csv(rows: Sequence[Row]) -> str:
    """``quantization.csv``: figures with two digits behind the point."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([field.name for field in fields(Row)])
    for row in rows:
        writer.writerow(f"{v:.2f}" if isinstance(v, float) else v for v in astuple(row))
    return text.getvalue()


def worst(content: str, count: int = 3) -> list[str]:
    """Name the layers of ``quantization.csv`` that lose most, and what to try, a line each."""
    rows = sorted(csv.DictReader(StringIO(content)), key=lambda row: float(row["own_sqnr_db"]))
    return [f"{row['layer']} ({row['own_sqnr_db']} dB): {_advice(row)}" for row in rows[:count]
            if float(row["own_sqnr_db"]) < inf]  # fmt: skip


def _advice(row: Mapping[str, str]) -> str:
    if float(row["own_sqnr_db"]) > ENOUGH_DB:
        return "it loses little"
    if float(row["clipped_pct"]) > MOST_CLIPPED_PCT:
        return (
            f"{row['clipped_pct']} % of its error is of values that its range cuts off: try "
            "quantize.observer=minmax"
        )
    if float(row["crest"]) > FAR:
        return (
            f"its largest value is {row['crest']} times the root mean square: try "
            "quantize.observer=percentile, or a ReLU6 behind it"
        )
    return "its values are rounded: try quantize=int8_qat, or more epochs of it"
