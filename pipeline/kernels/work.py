"""How much of an operator's work a step does."""

from __future__ import annotations

from pipeline.kernels.form import Form
from pipeline.plan.rates import work


def share(form: Form) -> float:
    """Work of the step: the operator's, as far as the step goes."""
    total = float(work(form.op, form.graph))
    pieces = [(form.out.extents, form.target.shape)]
    if form.partial:
        pieces += [
            (part.extents, form.graph.tensors[name].shape)
            for name, part in form.parts.items()
            if name != form.op.output
        ][:1]
    for extents, shape in pieces:
        for extent, limit in zip(extents, shape, strict=True):
            total *= extent / limit
    return total
