"""The small network whose generated C is kept as golden files.

``python -m tests.codegen.int8.configurations`` writes them anew, after a change that is meant.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pipeline.artifacts import write_text
from pipeline.codegen import generate
from pipeline.graph.graph import Graph
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.int8.plans import PLANS
from tests.codegen.int8.support import host
from tests.graphs import Net

GOLDEN = Path(__file__).parent / "golden"
PROVENANCE = {"graph": "0123456789abcdef", "plan": "fedcba9876543210"}


def network() -> Graph:
    """A residual block, depthwise and pointwise convolution, pooling, a classifier."""
    net = Net((8, 8, 3), np.random.default_rng(1), name="small")
    start = net.conv(4, stride=(2, 2))
    net.plus(net.conv(4), start)
    net.depthwise()
    net.conv(6, (1, 1))
    net.mean((4, 4))
    net.dense(3)
    net.softmax()
    return net.graph()


def generated(name: str) -> dict[str, str]:
    if name == "ordinary":
        graph = network()
        plan = Ordinary().plan(graph, host())
    else:
        graph, plan = PLANS[name]()
    return generate(graph, plan, host(), PROVENANCE)


CONFIGURATIONS = ("ordinary", "channel loop")


def folder(name: str) -> Path:
    return GOLDEN / name.replace(" ", "_")


if __name__ == "__main__":
    for configuration in CONFIGURATIONS:
        for file, content in generated(configuration).items():
            if file.startswith("model"):
                write_text(folder(configuration) / file, content)
