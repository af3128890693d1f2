"""``python -m tests.kernels.bench``: cycles of layers on simulated cores without flash waits, one
kernel each, into ``cycles.json``, beside what ``pipeline/kernels`` says of them, which is fitted to
that. Of all kernels, or of those that are named: ``cortex_m.row_depthwise``."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import Form, named
from pipeline.kernels.cortex_m.costs import CORES
from pipeline.plan.vocabulary import Compute, Plan
from pipeline.targets.toolchain import Size
from tests.codegen.cortex_m.bench import without_waits
from tests.codegen.cortex_m.support import core
from tests.importers.tflite_reference import frames
from tests.kernels.gathered import GATHERED
from tests.kernels.layers import RECORDED, Layer, Taken, recorded, step_of
from tests.targets.cortex_m import board_named, built, simulated

CONV = "cortex_m.conv2d", "int8.conv2d"
LAYERS = [
    *(
        Layer(kernel, shape, channels, window=window, stride=stride)
        for kernel in CONV
        for shape, channels, window, stride in (
            ((32, 32, 3), 16, (3, 3), (1, 1)),
            ((32, 32, 16), 16, (3, 3), (1, 1)),
            ((32, 32, 16), 32, (3, 3), (2, 2)),
            ((16, 16, 32), 32, (3, 3), (1, 1)),
            ((8, 8, 64), 64, (3, 3), (1, 1)),
            ((32, 32, 16), 32, (1, 1), (2, 2)),
            ((49, 10, 1), 64, (10, 4), (2, 2)),
            ((25, 5, 64), 64, (1, 1), (1, 1)),
            ((48, 48, 8), 16, (1, 1), (1, 1)),
            ((24, 24, 32), 32, (1, 1), (1, 1)),
            ((6, 6, 128), 128, (1, 1), (1, 1)),
            ((3, 3, 256), 256, (1, 1), (1, 1)),
            ((1, 1, 64), 32, (1, 1), (1, 1)),
            ((10, 10, 5), 7, (5, 5), (1, 1)),
        )
    ),
    *(
        Layer("cortex_m.conv2d", shape, channels, window=window, dilation=dilation, twice=twice)
        for shape, channels, window, dilation, twice in (
            ((20, 10, 45), 45, (3, 3), 1, False), ((20, 10, 45), 45, (3, 3), 2, False),
            ((20, 10, 45), 45, (3, 3), 4, True), ((20, 10, 45), 45, (3, 3), 16, False),
            ((12, 12, 16), 16, (3, 3), 2, True), ((20, 10, 1), 45, (3, 3), 1, False),
            ((16, 16, 32), 32, (1, 1), 1, True), ((8, 8, 64), 64, (3, 3), 1, True),
            ((5, 5, 48), 24, (1, 1), 1, True), ((14, 14, 192), 64, (1, 1), 1, False),
            ((7, 7, 96), 160, (1, 1), 1, True), ((9, 9, 40), 30, (1, 1), 1, False),
        )
    ),
    *(
        Layer("cortex_m.conv2d", shape, channels, window=window, at_once=at_once)
        for shape, channels, window, at_once in (
            ((16, 16, 16), 16, (3, 3), 2),
            ((16, 16, 16), 16, (3, 3), 4),
            ((25, 5, 64), 64, (1, 1), 8),
        )
    ),
    *(
        Layer("cortex_m.depthwise", shape, 0, "depthwise", window, stride, twice=twice)
        for shape, window, stride, twice in (
            ((12, 12, 64), (3, 3), (1, 1), True), ((10, 10, 48), (3, 3), (1, 1), True),
            ((12, 6, 128), (3, 3), (2, 2), False), ((7, 7, 96), (3, 3), (1, 1), False),
            ((20, 20, 24), (3, 3), (2, 2), True), ((5, 5, 160), (3, 3), (1, 1), False),
        )
    ),
    *(
        Layer(kernel, shape, kind="depthwise", window=window, stride=stride)
        for kernel in ("cortex_m.depthwise", "int8.conv2d")
        for shape, window, stride in (
            ((48, 48, 8), (3, 3), (1, 1)),
            ((48, 48, 16), (3, 3), (2, 2)),
            ((24, 24, 32), (3, 3), (1, 1)),
            ((12, 12, 64), (3, 3), (2, 2)),
            ((6, 6, 128), (3, 3), (1, 1)),
            ((3, 3, 256), (3, 3), (1, 1)),
            ((25, 5, 64), (3, 3), (1, 1)),
            ((16, 16, 12), (5, 5), (1, 1)),
            ((14, 14, 24), (7, 7), (1, 1)),
        )
    ),
    *(
        Layer("cortex_m.depthwise", shape, kind="depthwise", window=window, at_once=1)
        for shape, window in (((24, 24, 8), (3, 3)), ((12, 12, 16), (5, 5)), ((6, 6, 32), (3, 3)))
    ),
    *(
        Layer(kernel, shape, channels, kind="dense")
        for kernel in ("cortex_m.dense", "int8.dense")
        for shape, channels in (
            ((640,), 128), ((128,), 128), ((128,), 8), ((8,), 128), ((128,), 640), ((64,), 10),
            ((64,), 12), ((256,), 2), ((4, 4, 32), 30),
        )
    ),
    *(
        Layer(f"cortex_m.winograd{how}", shape, channels, window=(3, 3), twice=twice)
        for how, shape, channels, twice in (
            ("", (32, 32, 16), 16, False), ("", (16, 16, 32), 32, False),
            ("", (8, 8, 64), 64, False), ("", (16, 16, 3), 16, False),
            ("", (4, 4, 64), 32, False), ("", (13, 9, 7), 10, False), ("", (7, 7, 48), 32, True),
            ("_live4", (8, 8, 64), 64, False), ("_live4", (3, 8, 96), 32, False),
            ("_live8", (16, 16, 32), 32, False), ("_live8", (12, 3, 24), 48, True),
            ("_live16", (16, 16, 32), 32, False), ("_live16", (14, 14, 128), 24, False),
            ("_live32", (32, 32, 16), 16, False),
        )
    ),
    *(
        Layer(kernel, shape, kind=kind, window=window, stride=stride, same=same)
        for kind, kernels in (
            ("mean", ("cortex_m.pool", "int8.average_pool2d")),
            ("maximum", ("cortex_m.pool", "int8.max_pool2d")),
        )
        for kernel in kernels
        for shape, window, stride, same in (
            ((8, 8, 64), (8, 8), (8, 8), False),
            ((25, 5, 64), (25, 5), (25, 5), False),
            ((16, 16, 32), (2, 2), (2, 2), False),
            ((16, 16, 16), (3, 3), (1, 1), True),
        )
    ),
    *(
        Layer(kernel, shape, kind="plus")
        for kernel in ("cortex_m.sum", "int8.add")
        for shape in ((32, 32, 16), (16, 16, 32), (8, 8, 64), (10,))
    ),
    *(
        Layer(f"int8.{kernel}", shape, kind=kind)
        for kernel, kind in (
            ("multiply", "times"), ("lookup", "lookup"), ("softmax", "softmax"),
            ("concat", "concat"), ("pad", "pad"), ("rearrange", "rearrange"),
        )
        for shape in ((16, 16, 16), (8, 8, 64), (20, 4, 10))
    ),
    *(
        Layer(kernel, shape, channels, window=window, at_once=1)
        for kernel, shape, channels, window in (
            ("cortex_m.strips", (16, 16, 16), 16, (3, 3)),
            ("cortex_m.strips", (8, 8, 64), 16, (3, 3)),
            ("cortex_m.strips", (12, 12, 32), 16, (1, 1)),
            ("cortex_m.single", (16, 16, 16), 16, (3, 3)),
            ("cortex_m.single", (24, 24, 8), 8, (3, 3)),
            ("cortex_m.single", (24, 24, 32), 8, (1, 1)),
            ("cortex_m.rows", (24, 24, 3), 8, (3, 3)),
            ("cortex_m.rows", (32, 32, 4), 8, (5, 5)),
            ("cortex_m.rows", (16, 16, 6), 8, (3, 3)),
            ("int8.conv2d", (16, 16, 16), 16, (3, 3)),
            ("int8.conv2d", (24, 24, 3), 8, (3, 3)),
        )
    ),
    *(
        Layer(kernel, shape, channels, window=window, adding=adding)
        for kernel in ("cortex_m.accumulate", "int8.conv2d")
        for shape, channels, window, adding in (
            ((16, 16, 16), 16, (3, 3), 1),
            ((16, 16, 16), 16, (3, 3), 4),
            ((24, 24, 8), 16, (1, 1), 2),
            ((25, 5, 64), 64, (1, 1), 1),
            ((25, 5, 64), 64, (1, 1), 8),
        )
    ),
    *(
        Layer(kernel, shape, channels, window=window, adding=adding, bits=bits)
        for kernel in ("cortex_m.accumulate", "int8.conv2d")
        for shape, channels, window, adding, bits in (
            ((16, 16, 16), 16, (3, 3), 1, 8),
            ((20, 17, 9), 9, (1, 1), 1, 8),
            ((24, 24, 8), 32, (1, 1), 4, 8),
            ((25, 5, 64), 64, (1, 1), 1, 8),
            ((25, 5, 64), 64, (1, 1), 16, 8),
            ((16, 16, 16), 16, (3, 3), 1, 16),
            ((20, 17, 8), 24, (1, 1), 2, 16),
        )
    ),
    *(
        Layer("cortex_m.row_depthwise", shape, kind="depthwise", window=(3, 3), stride=stride)
        for shape, stride in (
            ((6, 48, 8), (1, 1)), ((6, 24, 32), (1, 1)), ((6, 12, 64), (1, 1)),
            ((6, 6, 128), (1, 1)), ((6, 5, 64), (1, 1)), ((3, 3, 256), (1, 1)),
            ((6, 14, 32), (1, 1)), ((6, 7, 64), (1, 1)), ((6, 10, 48), (1, 1)),
            ((6, 48, 16), (2, 2)), ((6, 24, 32), (2, 2)), ((6, 12, 64), (2, 2)),
            ((6, 6, 128), (2, 2)), ((6, 14, 64), (2, 2)), ((6, 28, 16), (2, 2)),
            ((6, 10, 48), (2, 2)), ((6, 20, 24), (2, 2)),
        )
    ),
    *(
        Layer("cortex_m.row_depthwise_wide", shape, kind="depthwise", window=window, stride=stride)
        for shape, window, stride in (
            ((8, 40, 16), (7, 7), (1, 1)), ((8, 20, 24), (5, 5), (1, 1)),
            ((6, 6, 48), (5, 5), (1, 1)), ((8, 5, 64), (7, 7), (1, 1)),
            ((8, 14, 24), (7, 7), (1, 1)), ((8, 12, 32), (5, 5), (2, 2)),
            ((10, 40, 12), (7, 7), (2, 2)), ((6, 3, 64), (5, 5), (1, 1)),
            ((8, 24, 16), (5, 7), (2, 2)), ((5, 10, 32), (5, 5), (2, 2)),
            ((6, 20, 24), (3, 5), (1, 1)),
        )
    ),
    *(
        Layer("cortex_m.row_pointwise", shape, channels, stride=stride)
        for shape, channels, stride in (
            ((3, 48, 8), 16, (1, 1)), ((3, 24, 16), 32, (1, 1)), ((3, 12, 64), 64, (1, 1)),
            ((3, 6, 128), 128, (1, 1)), ((3, 5, 64), 64, (1, 1)), ((3, 3, 256), 256, (1, 1)),
            ((3, 7, 96), 32, (1, 1)), ((3, 14, 32), 96, (1, 1)), ((3, 10, 32), 48, (1, 1)),
            ((4, 32, 16), 32, (2, 2)), ((4, 16, 32), 64, (2, 2)), ((3, 5, 276), 276, (1, 1)),
            ((3, 7, 144), 96, (1, 1)), ((3, 10, 384), 64, (1, 1)),
        )
    ),
    *(
        Layer("cortex_m.row_conv2d", shape, channels, window=(3, 3), stride=stride)
        for shape, channels, stride in (
            ((4, 32, 16), 16, (1, 1)), ((4, 16, 32), 32, (1, 1)), ((4, 8, 64), 64, (1, 1)),
            ((4, 8, 24), 8, (1, 1)), ((4, 32, 16), 32, (2, 2)), ((4, 16, 32), 64, (2, 2)),
        )
    ),
    *(
        Layer("cortex_m.row_image", shape, channels, window=window, stride=stride)
        for shape, channels, window, stride in (
            ((20, 10, 1), 64, (10, 4), (2, 2)), ((4, 32, 3), 16, (3, 3), (1, 1)),
            ((6, 96, 3), 8, (3, 3), (2, 2)), ((6, 96, 3), 32, (3, 3), (2, 2)),
            ((4, 28, 1), 6, (5, 5), (1, 1)), ((6, 10, 1), 45, (3, 3), (1, 1)),
        )
    ),
    *(
        Layer("cortex_m.row_added", shape, kind="rescaled_mean")
        for shape in ((4, 5, 64), (8, 8, 64), (3, 3, 256), (4, 14, 32), (7, 7, 160))
    ),
    *(
        Layer("cortex_m.row_pool", shape, kind=kind, window=window, stride=stride, same=same)
        for kind in ("mean", "maximum")
        for shape, window, stride, same in (
            ((6, 28, 6), (2, 2), (2, 2), False), ((8, 10, 45), (4, 3), (4, 3), False),
            ((6, 16, 16), (3, 3), (1, 1), True), ((6, 5, 32), (2, 2), (1, 1), False),
            ((6, 12, 24), (3, 3), (2, 2), True),
        )
    ),
    *(
        Layer("cortex_m.row_concat", shape, kind="concat")
        for shape in (
            (3, 28, 96), (3, 14, 240), (3, 7, 416), (3, 5, 24), (3, 12, 8), (3, 16, 16),
            (3, 10, 30),
        )
    ),
    *(
        Layer("cortex_m.gate", shape, kind="gate", clip=clip)
        for shape, clip in (
            ((16, 16, 16), ()), ((56, 14, 16), ()), ((14, 14, 96), ()), ((7, 7, 240), ()),
            ((4, 4, 10), ()), ((7, 7, 67), ()), ((14, 14, 24), (0, 90)), ((7, 7, 30), (-9, 255)),
            ((7, 7, 96), (0, 255)),
        )
    ),
    *(
        Layer("cortex_m.row_gate", shape, kind="gate", clip=clip)
        for shape, clip in (
            ((3, 56, 16), ()), ((3, 28, 24), ()), ((3, 14, 96), ()), ((3, 7, 240), ()),
            ((3, 5, 64), ()), ((3, 12, 8), ()), ((3, 3, 96), ()), ((3, 6, 40), ()),
            ((3, 14, 48), (0, 90)), ((3, 7, 96), (-9, 255)), ((3, 12, 64), (0, 255)),
        )
    ),
    *(
        Layer("cortex_m.row_dense", shape, channels, kind="dense")
        for shape, channels in (
            ((5, 5, 16), 120), ((4, 4, 32), 30), ((7, 7, 40), 10), ((3, 6, 15), 64),
            ((4, 12, 8), 6),
        )
    ),
    *(
        Layer("cortex_m.row_wide", shape, channels, "conv", window, stride, twice=twice)
        for shape, channels, window, stride, twice in (
            ((4, 10, 45), 45, (3, 3), (1, 1), False), ((4, 14, 24), 16, (3, 3), (1, 1), False),
            ((4, 7, 32), 32, (3, 3), (1, 1), True), ((4, 5, 48), 24, (3, 3), (1, 1), False),
            ((6, 18, 8), 16, (5, 5), (1, 1), True), ((4, 10, 16), 32, (3, 3), (2, 2), False),
            ((4, 22, 6), 10, (3, 3), (1, 1), False),
        )
    ),
    *(
        Layer("cortex_m.row_wide", shape, channels, "conv", (3, 3), dilation=dilation)
        for shape, channels, dilation in (
            ((5, 10, 45), 45, 2), ((9, 10, 45), 45, 4), ((33, 10, 45), 45, 16),
            ((4, 6, 64), 64, 1), ((4, 13, 20), 20, 1), ((4, 3, 64), 32, 1), ((4, 2, 32), 48, 1),
        )
    ),
    *(
        Layer("cortex_m.row_fused", shape, channels, twice=twice)
        for shape, channels, twice in (
            ((3, 5, 64), 64, False), ((3, 6, 128), 128, False), ((3, 5, 64), 64, True),
            ((3, 6, 64), 128, False), ((3, 5, 160), 96, False), ((3, 6, 24), 24, True),
        )
    ),
    *(
        Layer(f"cortex_m.row_{word}", shape, channels, kind, window, twice=True)
        for word, shape, channels, kind, window in (
            ("depthwise", (6, 12, 64), 0, "depthwise", (3, 3)),
            ("depthwise", (6, 5, 64), 0, "depthwise", (3, 3)),
            ("depthwise_wide", (8, 12, 32), 0, "depthwise", (5, 5)),
            ("pointwise", (3, 12, 64), 64, "conv", (1, 1)),
            ("pointwise", (3, 48, 8), 16, "conv", (1, 1)),
            ("conv2d", (4, 16, 32), 32, "conv", (3, 3)),
            ("image", (6, 32, 3), 16, "conv", (3, 3)),
        )
    ),
    *GATHERED,
]  # fmt: skip


def cycles(layer: Layer, hardware: Hardware) -> tuple[float, int]:
    """Of one pass: what an inference takes less without it. The call is there once, since compilers
    make the most of that in portable C. And the bytes of code of a kernel that makes rows."""
    graph = layer.graph()
    plan = layer.plan(graph, hardware)
    taken, size = _cycles(graph, plan, hardware)
    if layer.adding or len(graph.operators) > 1:
        taken -= _cycles(graph, layer.plan(graph, hardware, runs=False), hardware)[0]
    return taken / layer.passes(), code_bytes(size, step_of(plan, layer.kernel))


def code_bytes(size: Size, step: Compute) -> int:
    """Of the functions that make a row."""
    return sum(n for name, n in size.functions.items() if f"_{step.op}_row" in name)


def _cycles(graph: Graph, plan: Plan, hardware: Hardware) -> tuple[int, Size]:
    with tempfile.TemporaryDirectory(prefix="thimble.") as name:
        size = built(Path(name), graph, hardware, plan)
        runs = simulated(Path(name), graph, hardware, size, frames(graph, 1))
    assert runs.modelled_cycles is not None
    return runs.modelled_cycles["median"], size


BOARDS = dict(zip(CORES, ("nucleo_l4r5zi", "nucleo_f767zi", "nucleo_u575zi"), strict=True))


def cores(layer: Layer) -> tuple[str, ...]:
    """That it is measured on: portable C, of which less is asked, on the first alone."""
    return CORES if layer.kernel.startswith("cortex_m.") else CORES[:1]


def main(names: list[str]) -> int:
    boards = {cpu: without_waits(board_named(name)) for cpu, name in BOARDS.items()}
    known = dict(recorded())
    rows = []
    for layer in LAYERS:
        taken, code = known.get(layer, Taken([], 0))
        if not names or layer.kernel in names or not taken:
            found = [cycles(layer, boards[cpu]) for cpu in cores(layer)]
            taken, code = [round(each) for each, _ in found], found[0][1]
            errors = (
                f"{modelled(layer, cpu) / each - 1:+7.1%} of {each:9,}"
                for cpu, each in zip(CORES, taken, strict=False)
            )
            print(*errors, layer.fields(), flush=True)
        rows.append({**layer.fields(), "cycles": taken, **({"code_bytes": code} if code else {})})
    text = ",\n".join(json.dumps(row) for row in rows)
    RECORDED.write_text(f"[\n{text}\n]\n")
    return 0


def modelled(layer: Layer, cpu: str) -> float:
    """Cycles of the layer, as its kernel says."""
    graph = layer.graph()
    plan = layer.plan(graph, core())
    form = Form.of(step_of(plan, layer.kernel), plan.buffer, graph)
    return named(layer.kernel, form, core(cpu)).cycles(form)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
