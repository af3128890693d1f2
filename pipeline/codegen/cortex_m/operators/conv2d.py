"""Convolution of an image's rows, of pixels in any order over what they are made of, or of some
channels into accumulators: windows of some pixels are widened once, for all channels.

What is added up has no zero point in it, so that what lies outside adds nothing.
"""

from typing import Any

from pipeline.codegen.c.expressions import both
from pipeline.codegen.c.kernel import ASIDE
from pipeline.codegen.c.values import Value, whole
from pipeline.codegen.c.views import View
from pipeline.codegen.cortex_m import weights
from pipeline.codegen.cortex_m.operators import rounded
from pipeline.codegen.int8.job import Job, Part, scratch_view
from pipeline.codegen.int8.windows import Windows, convolved_view
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.cortex_m.accumulate import Accumulate
from pipeline.kernels.cortex_m.conv2d import Convolution, InPairs
from pipeline.kernels.cortex_m.gathered import GatheredConvolution


def compute(job: Job) -> None:
    view, flat = convolved_view(job)
    _call(job, Convolution(), view, job.part, flat=flat)


def gathered(job: Job) -> None:
    kernel = GatheredConvolution()
    places = dict(zip(("line_at", "made_at"), kernel.beside(job.form), strict=False))
    _call(job, kernel, job.source_view, job.part, anywhere=True, **places)


def accumulate(job: Job) -> None:
    op, count = job.operator(Conv2d), job.target.shape[2]
    view = job.rows_view(whole(job.source.shape[0]))
    given = view.box[-1]
    number = given.start // given.extent.const
    if not rounded.compute(job, op, given.extent.const, number, view):
        part = Part(count, number * count, Value(count))
        _call(job, Accumulate(), view, part, less=both(-job.source.zero_point))


def _call(
    job: Job, kernel: InPairs, view: View, part: Part, *, anywhere: bool = False, **shared: Any
) -> None:
    """
    Args:
        part: of the output channels of all passes; ``shared``: what the template knows besides.
    """
    form, delay, some = job.form, job.step.delay, kernel.window(job.form)
    pixels, count = kernel.together(form), job.box[0].extent * job.target.shape[1]
    aside = {ASIDE: scratch_view(job.kept, ASIDE)} if job.kept and delay else {}
    known: dict[str, Any] = {"flat": False, "less": ""}
    job.rows_call(
        "cortex_m/conv2d", view,
        {
            "first_pair": part.group(2), "channels": part.extent, "last_pair": part.extent + -2,
            "count": count,
        },
        beside=aside, order=job.order if anywhere else (), any_strides=anywhere,
        uneven=part.at_once % 2 or job.target.shape[2] % part.at_once % 2, delay=delay,
        window=Windows.of(job, view, some, pixels), anywhere=anywhere, pixels=pixels,
        tail=kernel.tail(form), even=count.known and count.const % pixels == 0,
        **known | shared | weights.of_windows(job, some, part.at_once),
    )  # fmt: skip


WRITERS = {
    "cortex_m.accumulate": accumulate,
    "cortex_m.conv2d": compute,
    "cortex_m.gathered_conv2d": gathered,
}
