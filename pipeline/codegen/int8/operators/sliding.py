"""Windows over an image: convolution, for each output channel a sum over the window, channel by
channel of the input; depthwise convolution and pooling."""

from pipeline.codegen.c import window
from pipeline.codegen.c.values import Span, whole
from pipeline.codegen.int8 import weights
from pipeline.codegen.int8.convolution import of_dense, ranges
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.operators import accumulate
from pipeline.codegen.int8.weights import Weights
from pipeline.codegen.int8.windowed import Windowed
from pipeline.errors import ThimbleError
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.pool2d import POOLINGS, Pool2d
from pipeline.kernels.int8.costs import word

LARGEST_BLOCK = 32
"""Sums kept at a time: they live on the stack."""


def compute(job: Job, gathers: bool = True) -> None:
    """``gathers``: a window of few channels is copied for all output channels, if that pays."""
    op = job.operator(Conv2d)
    count, _, _, depth = job.tensor(op.parameters[0]).shape
    if depth == 1 and (op.groups > 1 or weights.least(job) is None):
        return _depthwise(job, op)
    inside, some, outs = ranges(job, op, depth)
    windows = Windowed.of(job, inside, outs)
    view, columns = windows.view, windows.columns
    if gathers and accumulate.compute(windows, some):
        return
    full = some.start.known and some.extent.known and some.extent.const == depth
    read = weights.weights(job)
    held = read.window
    if held and held.strides[3] != 1:
        raise ThimbleError(f"{op.name}: code for this core reads weights side by side")
    # taps of one row side by side, channels and all: one loop
    row_wise = (
        full and (held is None or held.strides[2] == depth)
        and op.groups == 1 and op.dilation[1] == 1 and not view.rings[1]
        and (view.strides[1], view.strides[2]) == (depth, 1) and not view.scattered
        and (job.partial or not columns.vacant)
    )  # fmt: skip
    unit = windows.unit()
    pixel = not (job.apart or windows.kept) and (unit[2] > 1 or bool(windows.order))
    if pixel and max(unit[:2]) > 1:
        raise ThimbleError(f"{op.name}: code for this core overwrites its input pixel by pixel")
    # a group's channels may be given in part
    given = job.program.box(job.given(job.source.name))[2]
    cut = job.partial and op.groups > 1 and not (full and given.covers(whole(job.source.shape[2])))
    if cut and pixel:
        raise ThimbleError(f"{op.name}: code for this core adds parts of groups apart from them")
    done = {"pixel": outs.most if pixel else 0}
    together = {"most": done} if outs.covers(whole(count)) else done
    windows.call(
        "int8/conv2d", read, window.named("c", some) | window.named("given", given), depth=depth,
        row_wise=row_wise, dot=weights.least(job) if row_wise else None, cut=cut,
        outs_per_group=0 if op.groups == 1 else count // op.groups,
        weight_zero=weights.zero(job), ending=job.ending, **together,
    )  # fmt: skip


def _depthwise(job: Job, op: Conv2d) -> None:
    """One input channel a group, or a grey image: all channels of a tap side by side. Output
    channel o reads input channel o // multiplier."""
    count, _, kernel_w, _ = job.tensor(op.parameters[0]).shape
    inside, _, outs = ranges(job, op, 1)
    given, multiplier = job.program.box(job.given(job.source.name))[2], count // op.groups
    if job.partial and not given.covers(whole(job.source.shape[2])):
        outs = outs.within(Span(given.start * multiplier, given.stop * multiplier))
    _channels(
        Windowed.of(job, inside, outs), weights.weights(job, weights.TAPS_FIRST),
        divide=multiplier if op.groups > 1 else 0, zero=job.source.zero_point,
        weight_row=(kernel_w * count, count),
    )  # fmt: skip


def dense(job: Job) -> None:
    compute(of_dense(job), gathers=False)


def _channels(
    windows: Windowed, weights: Weights, *, divide: int, zero: int, weight_row: tuple[int, int]
) -> None:
    """Write the call for windows whose output channels have one input channel each: all channels of
    a tap side by side.

    Args:
        divide: output channel o reads input channel o // divide; 0: there is one input channel.
        weights: a table of (1, kh, kw, c_out), or of none to take the inputs as they are.
        weight_row: the table's strides along kh and kw.
    """
    job, outs = windows.job, windows.outs
    unit = windows.unit()
    if max(unit[:2]) > 1:
        raise ThimbleError(f"{job.op.name}: code for this core overwrites its input pixel by pixel")
    most = outs.most if unit[2] > 1 else min(outs.most, LARGEST_BLOCK)
    even = outs.extent.known and outs.extent.const % most == 0 if most else False
    if not even and unit[2] == 1:
        sizes = range(LARGEST_BLOCK // 4, LARGEST_BLOCK + 1)
        divisors = [n for n in sizes if outs.extent.known and outs.extent.const % n == 0]
        most, even = (divisors[-1], True) if divisors else (most, False)
    if windows.by_channel:
        most, even = 1, True
    block = {"block": max(most, 1)}
    windows.call(
        "int8/channels", weights, divide=divide, zero=zero, weight_row=weight_row, even=even,
        weight_zero=job.tensor(job.op.parameters[0]).zero_point if weights.array else 0,
        reduction=job.op.reduction, opened=job.op.reduction.start(job.source.dtype),
        ending=job.ending,
        **({"most": block} if outs.covers(whole(job.target.shape[2])) else block),
    )  # fmt: skip


def pool(job: Job) -> None:
    op = job.operator(Pool2d)
    given = job.program.box(job.given(job.source.name))
    rows, columns, _ = given if job.partial else map(whole, job.source.shape)
    outs = job.box[2].within(given[2]) if job.partial else job.box[2]
    adds, end = op.combine == "add", job.ending
    # what is counted are stored integers, zero points included
    zero = job.source.zero_point if adds and not (end and end.counted) else 0
    windows = Windowed.of(job, (rows, columns), outs)
    _channels(windows, Weights(), divide=1, zero=zero, weight_row=(0, 0))


WRITERS = {
    "int8.conv2d": compute,
    "int8.dense": dense,
    **{f"int8.{word(kind)}": pool for kind in POOLINGS},
}
