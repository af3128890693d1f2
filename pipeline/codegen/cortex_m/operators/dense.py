"""Dense layers of whole tensors: the input is widened once, for all output channels."""

from __future__ import annotations

from pipeline.codegen.binding import form_of
from pipeline.codegen.cortex_m import step, weights
from pipeline.codegen.cortex_m.ending import end
from pipeline.codegen.cortex_m.windows import halves
from pipeline.codegen.int8.job import Job, shape_text
from pipeline.graph.operators.dense import Dense
from pipeline.kernels.cortex_m.dense import MOST_WORDS, together


def compute(job: Job) -> None:
    op = job.operator(Dense)
    source, name = job.tensor(op.inputs[0]), op.parameters[0]
    (channels,) = job.target.shape
    values = job.program.graph.constants[name].reshape(channels, -1)
    places, rest = weights.order(1, source.size), source.size % 4
    at_once = together(channels)
    groups = weights.pairs(channels, at_once)
    job.call(
        "cortex_m/dense",
        f"{op.name}: dense {shape_text(source.shape)} -> {shape_text(job.target.shape)}",
        {"in": step.source_view(job), "out": job.out(), "scratch": step.scratch(job)},
        {},
        job.apart,
        inputs=source.size,
        anywhere=() if form_of(job).in_one_piece(source.name) else source.shape,
        channels=channels,
        pairs=at_once // 2,
        rests=list(zip(halves(rest, 1), range(source.size - rest, source.size), strict=True)),
        widen="s8" if source.dtype.signed else "u8",
        **weights.streamed(
            job,
            values,
            places,
            groups,
            end(job),
            together=at_once,
            unroll=weights.by_fours(len(places), MOST_WORDS[at_once]),
        ),
    )
