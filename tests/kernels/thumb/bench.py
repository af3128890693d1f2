"""``python -m tests.kernels.thumb.bench``: cycles of layers on a simulated Cortex-M0+ without flash
waits, one kernel each, into ``cycles.json``; then the costs that are nearest to them, for the
kernels' ``costs``, and how far off each layer is with those that are there."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

from pipeline.kernels import Form
from pipeline.kernels.thumb import KERNELS, ThumbKernel
from pipeline.kernels.work import Counts
from tests.codegen.cortex_m.bench import without_waits
from tests.kernels.bench import cycles
from tests.kernels.layers import Layer, step_of
from tests.targets.cortex_m import board_named

RECORDED = Path(__file__).parent / "cycles.json"
BOARD = "nucleo_g0b1re"
LAYERS = [
    *(
        Layer("thumb.conv2d", shape, channels, window=window, stride=stride, twice=twice)
        for shape, channels, window, stride, twice in (
            ((32, 32, 3), 16, (3, 3), (1, 1), True), ((32, 32, 16), 16, (3, 3), (1, 1), False),
            ((32, 32, 16), 32, (3, 3), (2, 2), True), ((16, 16, 32), 32, (3, 3), (1, 1), True),
            ((8, 8, 64), 64, (3, 3), (1, 1), False), ((32, 32, 16), 32, (1, 1), (2, 2), True),
            ((49, 10, 1), 64, (10, 4), (2, 2), False), ((25, 5, 64), 64, (1, 1), (1, 1), False),
            ((48, 48, 8), 16, (1, 1), (1, 1), False), ((24, 24, 32), 32, (1, 1), (1, 1), True),
            ((6, 6, 128), 128, (1, 1), (1, 1), False), ((3, 3, 256), 256, (1, 1), (1, 1), False),
            ((1, 1, 64), 32, (1, 1), (1, 1), True), ((10, 10, 5), 7, (5, 5), (1, 1), False),
            ((1, 2, 96), 24, (1, 1), (1, 1), False),
        )
    ),
    *(
        Layer("thumb.depthwise", shape, 0, "depthwise", window, stride, twice=twice)
        for shape, window, stride, twice in (
            ((48, 48, 8), (3, 3), (1, 1), False), ((48, 48, 16), (3, 3), (2, 2), True),
            ((24, 24, 32), (3, 3), (1, 1), False), ((12, 12, 64), (3, 3), (2, 2), False),
            ((6, 6, 128), (3, 3), (1, 1), True), ((3, 3, 256), (3, 3), (1, 1), False),
            ((25, 5, 64), (3, 3), (1, 1), False), ((16, 16, 12), (4, 5), (1, 1), True),
            ((20, 14, 24), (5, 3), (1, 2), False), ((60, 40, 4), (3, 3), (1, 1), False),
        )
    ),
    *(
        Layer("thumb.dense", shape, channels, "dense", twice=twice)
        for shape, channels, twice in (
            ((640,), 128, False), ((128,), 128, True), ((128,), 8, False), ((8,), 128, False),
            ((128,), 640, True), ((64,), 10, False), ((256,), 4, True), ((3, 3, 24), 30, True),
        )
    ),
]  # fmt: skip


@cache
def form_of(layer: Layer) -> tuple[ThumbKernel, Form]:
    """What the kernel is asked for."""
    graph, hardware = layer.graph(), board_named(BOARD)
    plan = layer.plan(graph, hardware)
    (kernel,) = (each for each in KERNELS if each.name == layer.kernel)
    return kernel, Form.of(step_of(plan, layer.kernel), plan.buffer, graph)


@cache
def recorded() -> list[tuple[Layer, int]]:
    rows = json.loads(RECORDED.read_text())
    return [(Layer.of(row), taken) for row in rows for taken in [row.pop("cycles")]]


def fitted(name: str) -> Counts:
    """The costs of a kernel with the least sum of squared relative errors, none below 0."""
    rows = [(form_of(layer), taken) for layer, taken in recorded() if layer.kernel == name]
    counts = [kernel.counts(form) for (kernel, form), _ in rows]
    words = list(counts[0])
    does = np.array([[each[word] for word in words] for each in counts])
    taken = np.array([taken for _, taken in rows])
    found = nnls(does / taken[:, None], np.ones(len(rows)))[0]
    return {word: float(f"{n:.3g}") for word, n in zip(words, found, strict=True) if n}


def error(layer: Layer, taken: int) -> float:
    kernel, form = form_of(layer)
    return kernel.cycles(form) / taken - 1


def main() -> int:
    hardware = without_waits(board_named(BOARD))
    rows = [{**layer.fields(), "cycles": round(cycles(layer, hardware)[0])} for layer in LAYERS]
    RECORDED.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    for kernel in KERNELS:
        print(kernel.name, json.dumps(fitted(kernel.name)))
    for layer, taken in recorded():
        print(f"{error(layer, taken):+7.1%} of {taken:9,}", layer.fields())
    return 0


if __name__ == "__main__":
    sys.exit(main())
