"""Tensors side by side along their channels, of a row in blocks: a block of the output is a block
of each input, one after the other."""

from __future__ import annotations

from pipeline.graph.operators.concat import Concat
from pipeline.kernels.cortex_m.by_row.layout import RowLayout
from pipeline.kernels.cortex_m.fast import Fast, words
from pipeline.kernels.form import Form
from pipeline.kernels.work import Counts

MOST_INLINE = 64
"""Bytes that a compiler copies without a call."""


class RowConcat(Fast):
    word = "row_concat"
    takes = "concatenations of channels that make one row in blocks, from rows in such blocks"

    def can(self, form: Form) -> bool:
        op, target = form.op, form.target
        if not isinstance(op, Concat) or op.axis != 2 or len(target.shape) != 3 or form.overlaps:
            return False
        every = [RowLayout.of(form, name) for name in (*op.inputs, op.output)]
        return (
            all(part.extents[0] == 1 for part in form.parts.values())
            and all(form.covers(name, slice(1, 3)) for name in form.parts)
            and all(row is not None and row.blocked for row in every)
            and len({row.pixels for row in every if row is not None}) == 1
        )

    def counts(self, form: Form) -> Counts:
        target = RowLayout.of(form, form.op.output)
        assert target is not None
        blocks, rest = divmod(target.columns, target.pixels)
        every = [form.graph.tensors[name].shape[2] for name in form.op.inputs]
        pieces = [n * width for n in every for width in (target.pixels,) * blocks + (rest,)]
        called = [piece for piece in pieces if piece > MOST_INLINE]
        return {
            "word": words(sum(called)),
            "word of a short piece": words(sum(pieces) - sum(called)),
            "long piece": len(called),
            "call": 1,
        }
