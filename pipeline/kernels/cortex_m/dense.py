"""Dense layers of whole tensors, or of a map's rows one by one as they are made: the input is
widened once, for all output channels."""

from __future__ import annotations

import numpy as np

from pipeline.graph.families import Weighted
from pipeline.graph.graph import Graph
from pipeline.graph.operators.dense import Dense
from pipeline.kernels.cortex_m.by_row.layout import added_row
from pipeline.kernels.cortex_m.fast import Fast, FastDense, words
from pipeline.kernels.cortex_m.inner import can_pack, packs, rounds
from pipeline.kernels.cortex_m.quick import endings, once_a_layer
from pipeline.kernels.form import Form
from pipeline.kernels.work import Counts

MOST_WORDS = {2: 8, 4: 8, 8: 4}
"""Most input words in the innermost loop's code, by how many channels are computed together."""

ENDS_APART = 48
"""Bytes of lines that are read for what ends a channel, beside those that it takes."""


class DenseLayer(FastDense):
    takes = "dense layers of two or more outputs, all at once, of tensors in one piece or anywhere"

    def can(self, form: Form) -> bool:
        return (
            isinstance(form.op, Dense)
            and not form.partial
            and form.target.size > 1
            and form.covers(form.op.output)
            and all(
                form.in_one_piece(name) or form.parts[name].spread == "table"
                for name in (form.op.output, form.op.inputs[0])
            )
        )

    def counts(self, form: Form) -> Counts:
        """Channels are computed eight at a time where few of them are computed twice."""
        op, inputs, channels = form.op, words(form.source.size), form.target.size
        assert isinstance(op, Dense)
        at_once = together(channels)
        groups = -(-channels // at_once)
        made = groups * at_once
        return {
            "word of a group": inputs * groups,
            "word of a channel": inputs * made,
            "the same, weights not packed": inputs * made * (not packs(op, form.graph)),
            "round": groups * rounds(inputs, MOST_WORDS[at_once]),
            "output": made,
            "group": groups,
            "word of the input": inputs,
            "call": 1,
            **endings(op, form.graph, made),
        }

    def table_bytes(self, form: Form) -> float:
        """Count what ends a channel as read once, from arrays that share no line of a cache."""
        return super().table_bytes(form) + ENDS_APART * form.target.size

    def scratch_bytes(self, form: Form) -> int:
        """The input, 16 bits an element."""
        return words(form.source.size) * 8


class RowDense(Fast):
    """Adds what a row contributes to a sum of 32 bits for each output; the row may lie in any
    order, weights lie in the same."""

    word = "row_dense"
    takes = "dense layers that add a row of a map, in one piece, to exact sums"

    def can(self, form: Form) -> bool:
        return isinstance(form.op, Dense) and added_row(form) is not None

    def counts(self, form: Form) -> Counts:
        op, at_once = form.op, together(form.target.size)
        assert isinstance(op, Dense)
        given, groups = words(row_bytes(form)), -(-form.target.size // at_once)
        apart = not row_packs(op, form.graph)
        return {
            "word of a group": given * groups,
            "word of a channel": given * groups * at_once,
            "the same, weights not packed": given * groups * at_once * apart,
            "round": groups * rounds(given, MOST_WORDS[at_once]),
            "output": form.target.size,
            "word of the input": given,
            "call": 1,
        }

    def scratch_bytes(self, form: Form) -> int:
        """The row, 16 bits an element."""
        return words(row_bytes(form)) * 8


@once_a_layer
def row_packs(op: Weighted, graph: Graph) -> bool:
    """Check whether two outputs' weights may share halves of words: sums are of one row."""
    every = graph.constants[op.parameters[0]].astype(np.int64)  # (outputs, rows, columns, channels)
    return can_pack(every, np.abs(every).sum((2, 3)) * 255)


def row_bytes(form: Form) -> int:
    return form.source.size // form.source.shape[0]


def together(channels: int) -> int:
    """Choose how many channels to compute at a time: as many as are there, and eight where few or
    none of them are computed twice."""
    if channels % 8 == 0 or channels > 32:
        return 8
    return 4 if channels >= 4 else 2
