"""One module an operator: each writes the call of a fast kernel, or says that it has none."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.codegen.cortex_m.operators import add, conv2d, dense, pool
from pipeline.codegen.int8.job import Job
from pipeline.graph.operator import Operator
from pipeline.graph.operators.add import Add
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.dense import Dense
from pipeline.graph.operators.pool2d import AveragePool2d, MaxPool2d

FAST: dict[type[Operator], Callable[[Job], bool]] = {
    Add: add.compute,
    AveragePool2d: pool.compute,
    Conv2d: conv2d.compute,
    Dense: dense.compute,
    MaxPool2d: pool.compute,
}
"""The result is False where the portable kernel has to do."""
