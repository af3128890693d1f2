"""One module a family of operators: what each asks of the templates."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.operators import (
    conv2d,
    copies,
    dense,
    elements,
    pool2d,
    softmax,
)
from pipeline.graph.operator import Operator
from pipeline.graph.operators.add import Add
from pipeline.graph.operators.concat import Concat
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.dense import Dense
from pipeline.graph.operators.lookup import Lookup
from pipeline.graph.operators.multiply import Multiply
from pipeline.graph.operators.pad import Pad
from pipeline.graph.operators.pool2d import AveragePool2d, MaxPool2d
from pipeline.graph.operators.rearrange import Rearrange
from pipeline.graph.operators.reshape import Reshape
from pipeline.graph.operators.softmax import Softmax

KERNELS: dict[type[Operator], Callable[[Job], None]] = {
    Add: elements.add,
    AveragePool2d: pool2d.compute,
    Concat: copies.concat,
    Conv2d: conv2d.compute,
    Dense: dense.compute,
    Lookup: elements.lookup,
    MaxPool2d: pool2d.compute,
    Multiply: elements.multiply,
    Pad: copies.pad,
    Rearrange: copies.rearrange,
    Reshape: copies.reshape,
    Softmax: softmax.compute,
}
"""Operators that code is generated for: what a support table shows."""

PARTIAL = (Add, AveragePool2d, Conv2d, Dense, MaxPool2d)
"""Those that may add to accumulators."""
