"""The same plan with its tensors strewn about: rows, pixels or elements anywhere."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Literal

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.plan.maps import Map
from pipeline.plan.vocabulary import Blocks, Buffer, Plan, Rows, Table

Kind = Literal["rows", "blocks", "pixels", "torn", "elements"]
KINDS: tuple[Kind, ...] = ("rows", "blocks", "pixels", "torn", "elements")


def scattered(plan: Plan, graph: Graph, kind: Kind, seed: int) -> Plan:
    """``plan`` has packed buffers apart from each other. Input and output stay as they are: who
    calls fills and reads them in one piece."""
    rng = np.random.default_rng(seed)
    kept = (graph.input, graph.output)

    def moved(buffer: Buffer) -> Buffer:
        if buffer.role in ("constant", "scratch") or buffer.tensor in kept:
            return buffer
        return replace(buffer, map=strewn(buffer, kind, rng))

    return replace(plan, buffers=tuple(map(moved, plan.buffers)))


def strewn(buffer: Buffer, kind: Kind, rng: np.random.Generator) -> Map:
    """The cells of a packed buffer in another order: pieces of its first axis, in blocks of pixels
    or not, of its first two, of those torn here and there, or each element."""
    cells = np.asarray(buffer.addresses(buffer.box))
    counts = {"rows": 1, "blocks": 1, "pixels": 2, "torn": 2, "elements": cells.ndim}
    axes = min(counts[kind], cells.ndim)
    pieces = cells.reshape(prod(cells.shape[:axes]), -1)
    mixed = pieces[rng.permutation(len(pieces))]
    if kind == "blocks" and cells.ndim == 3:
        pixels = int(rng.integers(1, cells.shape[1] + 1))
        return Blocks(tuple(int(cell) for cell in mixed[:, 0]), pixels, buffer.nibbles)
    if kind == "torn":
        mixed = np.where(rng.random((len(mixed), 1)) < 0.5, mixed, mixed[:, ::-1])
    if kind == "rows" and cells.ndim > 1:
        strides = np.array([cells[(0,) * (n + 1) + (1,) + (0,) * (cells.ndim - n - 2)]
                            if cells.shape[n + 1] > 1 else cells.flat[0]
                            for n in range(cells.ndim - 1)])  # fmt: skip
        steps = tuple(int(step) for step in strides - cells.flat[0])
        return Rows(tuple(int(cell) for cell in mixed[:, 0]), steps)
    return Table(tuple(int(cell) for cell in mixed.reshape(-1)))
