"""One module an operator: each writes the calls of its fast kernels (``pipeline.kernels``)."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.codegen.cortex_m.by_row import convolution as row_convolution
from pipeline.codegen.cortex_m.by_row import depthwise as row_depthwise
from pipeline.codegen.cortex_m.by_row import pool as row_pool
from pipeline.codegen.cortex_m.operators import (
    conv2d,
    dense,
    depthwise,
    elements,
    gathered,
    ordered,
    pool,
    single,
    winograd,
)
from pipeline.codegen.int8.job import Job
from pipeline.kernels.cortex_m.winograd import SPANS

WRITERS: dict[str, Callable[[Job], None]] = {
    "cortex_m.accumulate": conv2d.accumulate,
    "cortex_m.conv2d": conv2d.compute,
    "cortex_m.dense": dense.compute,
    "cortex_m.depthwise": depthwise.compute,
    "cortex_m.elements": elements.compute,
    "cortex_m.gathered_conv2d": conv2d.gathered,
    "cortex_m.gathered_depthwise": gathered.depthwise,
    "cortex_m.ordered_conv2d": ordered.compute,
    "cortex_m.ordered_dense": ordered.compute,
    "cortex_m.pool": pool.compute,
    "cortex_m.row_conv2d": row_convolution.compute,
    "cortex_m.row_dense": dense.by_row,
    "cortex_m.row_depthwise": row_depthwise.compute,
    "cortex_m.row_fused": row_convolution.compute,
    "cortex_m.row_pool": row_pool.compute,
    "cortex_m.single": single.in_pieces,
    "cortex_m.strips": single.in_strips,
    "cortex_m.winograd": winograd.compute,
    **{f"cortex_m.winograd_live{span}": winograd.compute for span in SPANS},
}
