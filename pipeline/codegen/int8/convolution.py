"""Describe a convolution, and what of its input may be read, for all of its writers."""

from pipeline.codegen.c.values import Span, whole
from pipeline.codegen.int8.job import Job, shape_text
from pipeline.errors import ThimbleError
from pipeline.graph.operators.conv2d import Conv2d


def ranges(job: Job, op: Conv2d, depth: int) -> tuple[tuple[Span, Span], Span, Span]:
    """What may be read (rows, columns), the channels of a group to add, and the output channels.

    A whole result reads all that its windows reach; a partial one what the step's slices name.
    """
    source = job.tensor(op.inputs[0])
    plain = (whole(source.shape[0]), whole(source.shape[1]))
    held = job.program.box(job.given(op.parameters[0]))
    if not job.partial:
        return plain, whole(depth), job.box[2]
    _, kernel_h, kernel_w, _ = job.tensor(op.parameters[0]).shape
    if not (held[1].covers(whole(kernel_h)) and held[2].covers(whole(kernel_w))):
        raise ThimbleError(f"{op.name}: code for this core takes a kernel's taps all at once")
    rows, columns, channels = job.program.box(job.given(source.name))
    outs = job.box[2].within(held[0])
    if op.groups == 1:
        return (rows, columns), channels.within(held[3]), outs
    return (rows, columns), held[3] if depth > 1 else whole(1), outs


def about(job: Job, op: Conv2d) -> str:
    source, weights = job.tensor(op.inputs[0]), job.tensor(op.parameters[0])
    words = [f"{shape_text(source.shape)} -> {shape_text(job.target.shape)}"]
    words.append(f"kernel {weights.shape[1]}x{weights.shape[2]}")
    for name, value, plain in (
        ("stride", op.stride, (1, 1)),
        ("dilation", op.dilation, (1, 1)),
        ("padding", op.padding, (0, 0, 0, 0)),
    ):
        if value != plain:
            words.append(f"{name} {' '.join(map(str, value))}")
    if op.groups > 1:
        words.append(f"{op.groups} groups")
    return f"{op.name}: convolution {', '.join(words)}"
