"""Convolutions and dense layers whose weights lie in a window, in the order that the tensor has."""

from pipeline.codegen.int8.convolution import of_dense, ranges
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.weights import weights
from pipeline.codegen.int8.windowed import Windowed
from pipeline.graph.operators.conv2d import Conv2d, Dense


def compute(job: Job) -> None:
    """A dense layer has one window, all of its input."""
    job = of_dense(job) if isinstance(job.op, Dense) else job
    op = job.operator(Conv2d)
    depth = job.tensor(op.parameters[0]).shape[3]
    inside, _, outs = ranges(job, op, depth)
    job.program.headers.add("nn_ordered.h")
    one = job.target.shape[:2] == (1, 1)
    windows = Windowed.of(job, inside, outs)
    windows.call("cortex_m/ordered", weights(job), depth=depth, one=one, ending=job.ending)


WRITERS = {"cortex_m.ordered": compute}
