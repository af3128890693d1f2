"""Dense layers of whole tensors, or of a map's rows one by one as they are made: the input is
widened once, for all output channels."""

from math import prod

from pipeline.graph.operators.conv2d import Dense
from pipeline.kernels.by_row import added_row
from pipeline.kernels.cortex_m.costs import Fitted
from pipeline.kernels.fast import FastDense, words
from pipeline.kernels.form import Form
from pipeline.kernels.quick import endings
from pipeline.kernels.work import Counts

MOST_WORDS = {2: 8, 4: 8, 8: 4}
"""Most input words in the innermost loop's code, by how many channels are computed together."""


class WidenedDense(Fitted):
    """The input is widened, of whole tensors all of it, then some channels at a time are made."""

    priced = "dense"

    def counts(self, form: Form) -> Counts:
        op, inputs, at_once = form.op, inputs_of(form), together(form.target.size)
        groups = -(-form.target.size // at_once)
        assert isinstance(op, Dense)
        counts = {
            "word of a channel": inputs * groups * at_once,
            "group": groups,
            "word of the input": inputs,
        }
        if form.partial:
            return counts
        outputs = groups * at_once
        return {**counts, "output": outputs, **endings(op, form.graph, outputs)}

    def scratch_bytes(self, form: Form) -> int:
        """Count what is widened, 16 bits an element."""
        return inputs_of(form) * 8


class DenseLayer(WidenedDense, FastDense):
    takes = "dense layers of two or more outputs, all at once, of tensors in one piece or anywhere"

    anywhere = True

    def can(self, form: Form) -> bool:
        return super().can(form) and form.target.size > 1


class RowDense(WidenedDense):
    """Adds what a row contributes to a sum of 32 bits for each output; the row may lie in any
    order, weights lie in the same."""

    word = "row_dense"
    takes = "dense layers that add a row of a map, in one piece, to exact sums"

    def can(self, form: Form) -> bool:
        return isinstance(form.op, Dense) and added_row(form) is not None


def inputs_of(form: Form) -> int:
    """Count the words that are widened."""
    return words(prod(form.given.extents))


def together(channels: int) -> int:
    """Choose how many channels to compute at a time: as many as are there, and eight where few or
    none of them are computed twice."""
    if channels % 8 == 0 or channels > 32:
        return 8
    return 4 if channels >= 4 else 2
