"""One module an operator: each writes the call of a fast kernel, or says that it has none."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.codegen.affine.job import Job
from pipeline.codegen.cortex_m.operators import add, conv2d, dense
from pipeline.graph.operator import Operator
from pipeline.graph.operators.add import Add
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.dense import Dense

FAST: dict[type[Operator], Callable[[Job], bool]] = {
    Add: add.compute,
    Conv2d: conv2d.compute,
    Dense: dense.compute,
}
"""The result is False where the portable kernel has to do."""
