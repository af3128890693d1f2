"""Base of the kernels in Thumb-1 assembly."""

from __future__ import annotations

from pipeline.graph.families import Weighted
from pipeline.kernels.cortex_m.fast import Fast
from pipeline.kernels.form import Form
from pipeline.kernels.thumb.ending import narrow_end

SUMS = 4
"""Registers that they are in, r8 to r11: of pixels, or of channels."""


class ThumbKernel(Fast):
    """``costs`` are those of a Cortex-M0+."""

    core = "thumb"


def ends(form: Form) -> bool:
    """Check whether all channels are made, and sums end by products of 32 bits."""
    whole = form.out.extents[-1] == form.target.shape[-1]
    return whole and isinstance(form.op, Weighted) and narrow_end(form.op, form.graph) is not None


def stepped(form: Form) -> bool:
    """See ``Narrow``."""
    end = narrow_end(form.op, form.graph) if isinstance(form.op, Weighted) else None
    return end is not None and end.stepped
