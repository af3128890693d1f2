"""Layers that the assembly takes, of sizes that nothing divides, and their plans on a Mega."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.kernels import Form, choose
from pipeline.plan.vocabulary import Compute, Plan
from tests.graphs import Net
from tests.targets.conftest import load_hardware

MEGA = load_hardware("arduino_mega")

OWN = {"avr.conv2d", "avr.depthwise", "avr.dense", "int8.looked_up_add"}
"""Kernels that take all of ``layers``."""


def least_zero(net: Net) -> None:
    """As after a ReLU: the last output's zero point is its least value."""
    last = net.tensors[net.last]
    net.tensors[net.last] = replace(last, zero_point=last.dtype.minimum)


def layers(seed: int) -> Graph:
    """Every kind, with one part of a row and several, clips, and shifts on both sides of a byte."""
    rng = np.random.default_rng(seed)
    dtype = ("int8", "uint8")[seed % 2]
    net = Net((6, int(rng.integers(3, 15)), 3), rng, dtype, name="layers")
    net.conv(5, (3, 2), dilation=(1, 2))
    least_zero(net)
    net.depthwise(stride=(1, int(rng.integers(1, 3))))
    least_zero(net)
    net.depthwise((2, 3), dilation=(2, 1))
    net.depthwise((2, 1), padding=(0, 0, 0, 0))
    left = net.conv(9, (1, 1))
    net.plus(left, net.conv(9, (1, 1)))
    net.conv(7, (3, 3), stride=(2, 1), per_channel=False)
    net.dense(11)
    net.dense(4)
    return net.graph()


def kernels(plan: Plan) -> set[str]:
    steps = [step for step in plan.tracks[0].steps if isinstance(step, Compute)]
    return {step.kernel for step in steps}


def chosen(graph: Graph) -> list[str]:
    """Of each operator, all at once."""
    return [choose(Form.whole(op, graph), MEGA).name for op in graph.operators]
