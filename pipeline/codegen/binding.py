"""Choice of the kernel that runs a step. The generator obeys the plan, or says why it can't."""

from dataclasses import replace

from pipeline.codegen.int8.job import Job
from pipeline.errors import ThimbleError
from pipeline.kernels import Form, Kernel, choose, named, offers
from pipeline.plan.vocabulary import Affine, Buffer


def kernel_of(job: Job) -> Kernel:
    """The one that the step names; where it names none, the fastest that its scratch is enough for.

    Raises:
        ThimbleError: where the kernel doesn't compute such a step, or none does.
    """
    step, hardware = job.step, job.program.hardware
    form = job.form
    scratch_bytes = max(
        (_usable_bytes(job.program.plan.buffer[n]) for n in step.scratch), default=0
    )
    if not step.kernel:
        able = (k for k in offers(form, hardware) if k.scratch_bytes(form) <= scratch_bytes)
        return next(able, None) or choose(form, hardware, scratch=False)
    kernel = named(step.kernel, form, hardware)
    others = [_as_a_pass(form, job)]
    if job.kept:  # it is meant to lie over its input, and may lie apart all the same
        others.append(replace(form, overlaps=frozenset(job.op.inputs)))
    if (why := kernel.why_not(form)) and all(map(kernel.why_not, others)):
        raise ThimbleError(f"{job.op.name}: the plan runs it by {kernel.name}, but {why}")
    if (needed := kernel.scratch_bytes(form)) > scratch_bytes:
        raise ThimbleError(
            f"{job.op.name}: {kernel.name} needs {needed} B of scratch at a word, the plan has "
            f"{scratch_bytes} B"
        )
    return kernel


def _as_a_pass(form: Form, job: Job) -> Form:
    """Return the form of all passes of a loop over channels for its last one, bound by itself: that
    has fewer channels than the passes that the plan's kernel was chosen for."""
    parts = dict(form.parts)
    for piece in (*job.step.ins, job.step.out):
        tensor, low, size = job.program.buffer(piece).tensor, piece.lo[-1], piece.size[-1]
        part = parts.get(tensor)
        if part and isinstance(low, int) and size > part.extents[-1] and low % size == 0:
            extents, multiples = (*part.extents[:-1], size), (*part.multiples[:-1], True)
            parts[tensor] = replace(part, extents=extents, multiples=multiples)
    return replace(form, parts=parts)


def _usable_bytes(scratch: Buffer) -> int:
    """Count the bytes of a buffer that is in one piece, from a word on; 0 for any other."""
    place = scratch.map
    if scratch.role != "scratch" or scratch.bits != 8:
        return 0
    if not isinstance(place, Affine) or place.base % 8:
        return 0
    return scratch.shape[0] if place.strides == (2,) else 0
