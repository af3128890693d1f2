"""Convolutions, depthwise ones and dense layers: which parts of a row have which code."""

from __future__ import annotations

from typing import Any

from pipeline.codegen.avr import rows
from pipeline.codegen.avr.stream import flip, from_least, stream
from pipeline.codegen.binding import form_of
from pipeline.codegen.c import window
from pipeline.codegen.cortex_m import step
from pipeline.codegen.int8.convolution import about
from pipeline.codegen.int8.job import Job, shape_text
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.avr import Convolution, Depthwise
from pipeline.kernels.avr.convolution import UNROLL
from pipeline.kernels.avr.depthwise import columns_read
from pipeline.kernels.avr.rows import AvrRows
from pipeline.kernels.cortex_m.by_row.parts import Part


def convolution(job: Job) -> None:
    codes, runs = rows.runs(Convolution().parts(form_of(job)), lambda part: part.pixels)
    sizes = [part.pixels for part in codes]
    more = {"sizes": sizes, "runs": runs, "unroll": UNROLL}
    _windows(job, Convolution(), True, more)


def depthwise(job: Job) -> None:
    form = form_of(job)

    def alike(part: Part) -> object:
        read = columns_read(form, part)
        return part.pixels, [column - next(iter(read)) for column in read], list(read.values())

    codes, runs = rows.runs(Depthwise().parts(form), alike)
    firsts = [next(iter(columns_read(form, Part(run.first, run.pixels)))) for run in runs]
    read = [(part.pixels, list(columns_read(form, part).items())) for part in codes]
    more = {"codes": read, "runs": list(zip(runs, firsts, strict=True))}
    _windows(job, Depthwise(), False, more)


def _windows(job: Job, kernel: AvrRows, unsigned: bool, more: dict[str, Any]) -> None:
    op = job.operator(Conv2d)
    rows.check(job, kernel)
    source = job.tensor(op.inputs[0])
    _, kernel_h, kernel_w, _ = job.tensor(op.parameters[0]).shape
    view = step.rows_view(job)
    views = {"in": view, "out": job.out(ring_axes=1)}
    if job.step.scratch:
        views["scratch"] = step.scratch(job)
    job.call(
        f"avr/int8/{kernel.word}",
        about(job, op),
        views,
        {**window.named("y", job.box[0]), "in_y": view.box[0].start},
        kind="assembly",
        kernel=(kernel_h, kernel_w),
        stride=op.stride,
        pad=(op.padding[0], op.padding[2]),
        dilation=op.dilation,
        height=source.shape[0],
        columns=source.shape[1],
        depth=source.shape[2],
        channels=job.target.shape[2],
        stream=stream(job, unsigned),
        zero=from_least(source),
        flip=flip(source),
        **more,
    )


def dense(job: Job) -> None:
    op = job.op
    source = job.tensor(op.inputs[0])
    job.call(
        "avr/int8/dense",
        f"{op.name}: dense {shape_text(source.shape)} -> {shape_text(job.target.shape)}",
        {"in": step.source_view(job), "out": job.out(), "scratch": step.scratch(job)},
        {},
        kind="assembly",
        channels=job.target.size,
        stream=stream(job, True),
        flip=flip(source),
        unroll=UNROLL,
    )


WRITERS = {"avr.conv2d": convolution, "avr.dense": dense, "avr.depthwise": depthwise}
