"""Dense layers: four channels at a time, of the inputs that are not the zero point."""

from __future__ import annotations

import numpy as np

from pipeline.codegen.cortex_m import step
from pipeline.codegen.int8.job import Job, shape_text
from pipeline.codegen.thumb.ending import ends
from pipeline.kernels.thumb.dense import UNROLL


def compute(job: Job) -> None:
    op, constants = job.op, job.program.constants
    source, name = job.tensor(op.inputs[0]), op.parameters[0]
    finish = ends(job, 0)
    rows = np.concatenate([finish.starts[:, None], finish.ends], axis=1)
    job.call(
        "thumb/dense",
        f"{op.name}: dense {shape_text(source.shape)} -> {shape_text(job.target.shape)}",
        {"in": step.source_view(job), "out": job.out(), "scratch": step.scratch(job)},
        {},
        inputs=source.size,
        channels=job.target.size,
        unroll=UNROLL,
        zero=source.zero_point,
        words=rows.shape[1],
        ends=finish,
        weights=constants.add(
            op.name, "weights", "int8_t", job.program.graph.constants[name].reshape(-1),
            f"{op.name}: weights", job.in_flash(name),
        ),
        table=constants.add(
            op.name, "ends", "int32_t", rows,
            f"{op.name}: of each channel what its sum begins with, and how it ends",
        ),
    )  # fmt: skip
