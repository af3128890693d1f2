"""One module a family of operators: each writes the calls of its kernels (``pipeline.kernels``)."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.operators import conv2d, copies, dense, elements, pool2d, softmax

WRITERS: dict[str, Callable[[Job], None]] = {
    "int8.add": elements.add,
    "int8.average_pool2d": pool2d.compute,
    "int8.concat": copies.concat,
    "int8.conv2d": conv2d.compute,
    "int8.dense": dense.compute,
    "int8.lookup": elements.lookup,
    "int8.max_pool2d": pool2d.compute,
    "int8.multiply": elements.multiply,
    "int8.pad": copies.pad,
    "int8.rearrange": copies.rearrange,
    "int8.reshape": copies.reshape,
    "int8.softmax": softmax.compute,
}
"""By the name of the kernel."""
