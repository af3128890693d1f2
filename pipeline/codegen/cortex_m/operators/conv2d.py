"""Convolution of an image's rows, of pixels in any order over what they are made of, or of some
channels into accumulators: windows of some pixels are widened once, for all channels.

What is added up has no zero point in it, so that what lies outside adds nothing.
"""

from __future__ import annotations

from typing import Any

from pipeline.codegen.binding import form_of
from pipeline.codegen.c import window
from pipeline.codegen.c.kernel import ASIDE, SCRATCH
from pipeline.codegen.c.values import Value, whole
from pipeline.codegen.c.views import View
from pipeline.codegen.cortex_m import step, weights
from pipeline.codegen.cortex_m.operators import rounded
from pipeline.codegen.cortex_m.windows import Windows, convolved_view
from pipeline.codegen.int8.convolution import about
from pipeline.codegen.int8.job import Job, scratch_view
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.cortex_m.accumulate import Accumulate
from pipeline.kernels.cortex_m.conv2d import Convolution, Widened
from pipeline.kernels.cortex_m.gathered import GatheredConvolution


def compute(job: Job) -> None:
    kernel, part, channels = Convolution(), step.part(job), job.target.shape[2]
    view, flat = convolved_view(job)
    groups = weights.passes(channels, part.at_once, 2)
    stream = weights.of_windows(job, kernel.window(form_of(job)), groups)
    uneven = part.at_once % 2 or channels % part.at_once % 2
    _call(job, kernel, view, part.group(2), part.extent, flat=flat, uneven=uneven, **stream)


def gathered(job: Job) -> None:
    kernel, form, count = GatheredConvolution(), form_of(job), job.target.shape[2]
    stream = weights.of_windows(job, kernel.window(form), weights.pairs(count, 2))
    places = dict(zip(("line_at", "made_at"), kernel.beside(form), strict=False))
    view = step.source_view(job)
    _call(job, kernel, view, Value(), Value(count), anywhere=True, **places, **stream)


def accumulate(job: Job) -> None:
    op, kernel, count = job.operator(Conv2d), Accumulate(), job.target.shape[2]
    source = job.tensor(op.inputs[0])
    given = job.program.box(job.given(source.name))[-1]
    view = step.rows_view(job, given, whole(source.shape[0]))
    number = given.start // given.extent.const
    if rounded.compute(job, op, given.extent.const, number, view):
        return
    less = f"0x{(-source.zero_point & 0xFFFF) * 0x10001:08X}u"
    stream = weights.of_passes(job, kernel.window(form_of(job)))
    _call(job, kernel, view, number * -(-count // 2), Value(count), less=less, **stream)


def _call(
    job: Job, kernel: Widened, view: View, first_pair: Value, channels: Value, *,
    anywhere: bool = False, **shared: Any,
) -> None:  # fmt: skip
    """
    Args:
        first_pair: where weights of two output channels begin; ``channels``: made of them.
        shared: what the template knows besides.
    """
    form, delay, (rows, columns, _) = form_of(job), job.step.delay, job.box
    pixels, count = kernel.together(form), rows.extent * job.target.shape[1]
    aside = {ASIDE: scratch_view(job.kept, ASIDE)} if job.kept and delay else {}
    known: dict[str, Any] = {"flat": False, "less": "", "uneven": job.target.shape[2] % 2}
    job.call(
        "cortex_m/conv2d",
        about(job, job.operator(Conv2d)) + job.words,
        {"in": view, "out": job.out(), SCRATCH: step.scratch(job), **aside},
        {
            **{"first_pair": first_pair, "channels": channels, "last_pair": channels + -2},
            **{"count": count, "in_y": Value() if anywhere else view.box[0].start},
            **window.named("y", rows), **window.named("x", columns),
        },
        job.apart or job.partial,
        order=job.order if anywhere else (),
        any_strides=anywhere,
        channels=job.target.shape[2],
        delay=delay,
        window=Windows.of(job, view, kernel.window(form), pixels),
        anywhere=anywhere,
        pixels=pixels,
        tail=kernel.tail(form),
        even=count.known and count.const % pixels == 0,
        **known | shared,
    )  # fmt: skip
