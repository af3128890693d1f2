"""``python -m tests.codegen.cortex_m.bench_winograd``: the convolutions that Winograd's minimal
filtering is for, 3x3 of stride 1 with 16 or more input channels, of MLPerf Tiny's image
classification within 150 kB of flash and of VGG16: kilocycles on a Cortex-M4 without flash waits,
as kernels say, which is within 1 % of what simulated layers take. VGG16's weights are normally
distributed, as those of networks are; they stay as they are in flash, and scratch is 512 KiB at
most. Ends with 1 where the layers of a network take more than half of what they take without.
"""

from __future__ import annotations

import sys

import numpy as np

from pipeline import passes
from pipeline.graph.graph import Graph
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.hardware import Hardware
from pipeline.importers.tflite import TFLite
from pipeline.kernels import Form, cycles_by_operator, cycles_of_step, offers, quicker
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.cortex_m.bench import FLASH_BYTES, PLAIN, without_waits
from tests.codegen.cortex_m.support import core
from tests.graphs import Net
from tests.public_models import MODELS, required
from tests.targets.cortex_m import board_named

MUST = 0.5
SCRATCH_BYTES = 512 << 10

Found = tuple[str, str, float, float]
"""A layer, its kernel, its cycles without and with what is asked for."""


def wanted(op: object, graph: Graph) -> bool:
    if not isinstance(op, Conv2d) or op.stride != (1, 1):
        return False
    _, *kernel, depth = graph.tensors[op.parameters[0]].shape
    return kernel == [3, 3] and depth >= 16


def resnet8() -> list[Found]:
    """As it is planned."""
    source = TFLite(path=str(MODELS / "pretrainedResnet_quant.tflite")).graph()
    graph = passes.applied(source, PLAIN)
    hardware = without_waits(board_named("nucleo_l4r5zi", flash_bytes=FLASH_BYTES))
    plans = [Ordinary(objective=each).plan(graph, hardware) for each in ("memory", "latency")]
    taken = [cycles_by_operator(plan, graph, hardware) for plan in plans]
    steps = {step.op: step.kernel for step in plans[1].tracks[0].steps}  # type: ignore[union-attr]
    names = [op.name for op in graph.operators if wanted(op, graph)]
    return [(name, steps[name], taken[0][name], taken[1][name]) for name in names]


def vgg16() -> list[Found]:
    """Layer by layer."""
    hardware, found, depth = core(), list[Found](), 3
    for number, (side, channels, layers) in enumerate(
        ((224, 64, 2), (112, 128, 2), (56, 256, 3), (28, 512, 3), (14, 512, 3)), 1
    ):
        for layer in range(1, layers + 1):
            graph = convolution(side, depth, channels)
            if wanted(graph.operators[0], graph):
                found.append((f"conv{number}_{layer}", *fastest(graph, hardware)))
            depth = channels
    return found


def convolution(side: int, depth: int, channels: int) -> Graph:
    rng = np.random.default_rng(depth)
    net = Net((side, side, depth), rng, name="layer")
    net.conv(channels, (3, 3))
    (op,) = net.operators
    weights = net.constants[op.parameters[0]]
    weights[:] = rng.normal(0, 32, weights.shape).round().clip(-127, 127)
    return net.graph()


def fastest(graph: Graph, hardware: Hardware) -> tuple[str, float, float]:
    form = Form.whole(graph.operators[0], graph)
    usual = offers(form, hardware)[0]
    live = [
        kernel
        for kernel in quicker(form, hardware)
        if kernel.scratch_bytes(form) <= SCRATCH_BYTES
        and kernel.table_bytes(form) < 2 * usual.table_bytes(form)
    ]
    best = min((usual, *live), key=lambda kernel: cycles_of_step(kernel, form, hardware))
    return best.name, *(cycles_of_step(each, form, hardware) for each in (usual, best))


def show(network: str, found: list[Found]) -> bool:
    """Whether it keeps to ``MUST``."""
    for name, kernel, usual, taken in found:
        line = f"{usual / 1e3:12,.0f} {taken / 1e3:12,.0f} {taken / usual:6.3f}"
        print(f"{network:12} {name:12} {line}  {kernel.rpartition('.')[2]}")
    usual, taken = (sum(each[n] for each in found) for n in (2, 3))
    print(f"{network:12} {'all':12} {usual / 1e3:12,.0f} {taken / 1e3:12,.0f} {taken / usual:6.3f}")
    return taken <= MUST * usual


def main() -> int:
    print(f"{'network':12} {'layer':12} {'without':>12} {'with':>12}  ratio  kernel")
    required()
    kept = [show("VGG16", vgg16()), show("ResNet8", resnet8())]
    return int(not all(kept))


if __name__ == "__main__":
    sys.exit(main())
