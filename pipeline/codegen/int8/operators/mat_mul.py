"""Products of two activations as matrices: for each element a row times a column."""

from __future__ import annotations

from pipeline.codegen.c import window
from pipeline.codegen.int8.ending import scaling, stored
from pipeline.codegen.int8.job import Job, shape_text
from pipeline.graph.operator import limits
from pipeline.graph.operators.mat_mul import MatMul


def compute(job: Job) -> None:
    op, program = job.operator(MatMul), job.program
    job.refuse_overlap()
    views = {
        kind: job.view(kind, job.given(name), ring_axes=3)
        for kind, name in zip(("in", "right"), op.operands, strict=True)
    }
    begins = {
        f"{word}_{axis}": part.start
        for word, view in zip(("left", "right"), views.values(), strict=True)
        for axis, part in enumerate(view.box)
    }
    sums = op.partial_sums(program.graph.tensors, program.graph.constants)
    shapes = [job.tensor(name).shape for name in op.operands]
    ranges = {key: value for axis, part in zip("ryx", job.box, strict=True)
              for key, value in window.named(axis, part).items()}  # fmt: skip
    job.call(
        "int8/mat_mul",
        {**views, "out": job.out(ring_axes=3)},
        ranges | begins,
        about=f"{op.name}: {' * '.join(map(shape_text, shapes))} -> {shape_text(job.target.shape)}",
        any_strides=True,
        turned=op.turned,
        alone=[shape[0] == 1 for shape in shapes],
        inner=op.atoms(program.graph.tensors),
        right_zero=job.tensor(op.operands[1]).zero_point,
        zero=job.tensor(op.operands[0]).zero_point,
        scaled=scaling(program.constants, op.name, op.requant, sums).scaled("sum"),
        result=stored("value", limits(job.target, op.clip), job.target.zero_point),
    )


WRITERS = {"int8.mat_mul": compute}
