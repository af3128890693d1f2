"""Views of rows, wherever each lies, and of rows in blocks, element by element as they lie; and
whether a row that is made may lie where it does."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.codegen.c.values import Value, whole
from pipeline.codegen.c.views import View
from pipeline.codegen.int8.job import Job
from pipeline.errors import ThimbleError
from pipeline.kernels.by_row import RowKernel, RowLayout
from pipeline.plan.vocabulary import Slice


def made_row(job: Job) -> int:
    """Return the number of the row."""
    assert job.box[0].start.known, "loops around row kernels are unrolled"
    return job.box[0].start.const


def row_view(job: Job, name: str, piece: Slice, row: int) -> View:
    """Row ``row`` of the tensor that ``piece`` is of."""
    buffer = job.program.buffer(piece)
    tensor = job.tensor(buffer.tensor)
    box = (whole(1), *map(whole, buffer.shape[1:]))
    first = buffer.addresses(((row, row + 1), *((0, 1) for _ in buffer.shape[1:])))
    place = Value(int(first.item()) // 2)
    array, signed = job.program.array(buffer), tensor.dtype.signed
    return View(name, array, place, (0, 1, 1), (0, 0, 0), box, bits=8, signed=signed)


def out_row(job: Job) -> View:
    """Return the one that the step makes."""
    return row_view(job, "out", job.step.out, made_row(job))


def layouts(job: Job, kernel: RowKernel, rows: Sequence[View]) -> tuple[RowLayout, RowLayout]:
    """Return input and output rows' layouts; ``rows``: those read.

    Raises:
        ThimbleError: where the output lies over an input in a way that the kernel doesn't bear.
    """
    form = job.form
    if job.overlaps:
        turns, out = kernel.access_order(form), out_row(job).offset.const
        for view in rows:
            apart = out - view.offset.const
            if view.constant or not turns.forbids(apart):
                continue
            raise ThimbleError(
                f"{job.op.name}: the plan has {kernel.name} write its output {apart} B after an "
                "input row, which it would overwrite before it is read"
            )
    return kernel.known(form)


@dataclass(frozen=True)
class Stretch:
    """Adjacent blocks of as many pixels each, of every tensor of a row.

    Attributes:
        offset: bytes from the row's begin.
        extents: blocks, channels, pixels.
    """

    offset: int
    extents: tuple[int, int, int]

    @property
    def strides(self) -> tuple[int, int, int]:
        """Bytes, of elements of one."""
        _, channels, pixels = self.extents
        return channels * pixels, pixels, 1

    def of(self, view: View) -> View:
        return replace(view, offset=view.offset + self.offset)


def stretches(job: Job) -> list[Stretch]:
    """List stretches if the step makes a row in blocks from rows alike, and vectors; else none.
    Element by element, without a vector, it is one."""
    form, start = job.form, job.box[0].start
    if not start.known or not form.alike_blocks():
        return []
    _, columns, channels = extents = job.target.shape
    read = (*job.op.inputs, *job.op.parameters)
    if job.op.element_wise and all(job.tensor(name).shape == extents for name in read):
        return [Stretch(0, (1, 1, columns * channels))]
    blocks, rest = divmod(columns, form.out.pixels)
    found = [
        Stretch(0, (blocks, channels, form.out.pixels)),
        Stretch(blocks * form.out.pixels * channels, (1, channels, rest)),
    ]
    return [each for each in found if each.extents[0] * each.extents[2]]
