"""Weights as portable kernels read them: a table of the whole tensor in the kernel's own order, or
a window of the arena, whose elements are in the tensor's order.
"""

from dataclasses import dataclass, field

from pipeline.codegen.c.values import Value
from pipeline.codegen.c.views import View
from pipeline.codegen.constants import Array
from pipeline.codegen.int8.job import Job

NAME = "weights"
"""Name of the view of a window in the kernel."""


@dataclass(frozen=True)
class Weights:
    """
    Attributes:
        array: what the kernel's code reads elements of.
        views, values: what a call gives besides, of a window: where it begins, and at which output
            channel and which of the last indices.
    """

    array: Array | None = None
    views: dict[str, View] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)

    @property
    def window(self) -> View | None:
        return self.views.get(NAME)


OF_WINDOWS = ("c_out", "kh", "kw", "c_in")
"""Axes of weights of convolutions."""

TAPS_FIRST = (3, 1, 2, 0)
"""Order of a table in which those of one tap are side by side for all channels, of depth 1."""


def weights(job: Job, axes: tuple[int, ...] = ()) -> Weights:
    """``axes``: of the tensor in the order in which a table has them, if not its own."""
    name = job.op.parameters[0]
    if not job.held(name):
        return Weights(table(job, axes))
    box = job.program.box(job.given(name))
    view = job.view(NAME, job.given(name), box, ring_axes=len(box))
    axes_of_view = zip("oyx"[: len(box) - 1] + "c", view.box, strict=True)
    starts = {f"{NAME}_{axis}": part.start for axis, part in axes_of_view}
    return Weights(Array(NAME), {NAME: view}, starts)


def zero(job: Job) -> int:
    """Return what is to be taken off each weight."""
    return job.tensor(job.op.parameters[0]).zero_point


def least(job: Job) -> int | None:
    """Return what ``nn_dot`` subtracts from each input, as a byte, where the core has one of its
    own: weights lie in the arena, inputs are at least their zero point. None elsewhere."""
    assembly = job.program.hardware.core == "avr" and job.held(job.op.parameters[0])
    plain = job.source.zero_point == job.source.dtype.minimum and not zero(job)
    return job.source.zero_point % 256 if assembly and plain else None


def table(job: Job, axes: tuple[int, ...] = ()) -> Array:
    """Return all of them, see ``weights``."""
    values = job.program.graph.constants[job.op.parameters[0]]
    order = axes or tuple(range(values.ndim))
    about = ", ".join(OF_WINDOWS[axis] for axis in order)
    return job.table(NAME, "int8_t", values.transpose(order), about, weights=True)
