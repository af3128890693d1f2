"""Dense layers of whole tensors: the input is widened once, for all output channels."""

from __future__ import annotations

from typing import ClassVar

from pipeline.graph.operators.dense import Dense
from pipeline.kernels.cortex_m.fast import Fast, words
from pipeline.kernels.form import Form
from pipeline.kernels.gap import Gap
from pipeline.kernels.work import Counts


class DenseLayer(Fast):
    word = "dense"
    takes = "dense layers of two or more outputs, all at once, of tensors in one piece or anywhere"
    costs: ClassVar[Counts] = {
        "word of a group": 1.47,
        "word of a channel": 4.55,
        "output": 23.7,
        "group": 9.16,
        "word of the input": 9.28,
    }

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
        inputs, channels = words(form.source.size), form.target.size
        at_once = together(channels)
        groups = -(-channels // at_once)
        return {
            "word of a group": inputs * groups,
            "word of a channel": inputs * groups * at_once,
            "output": groups * at_once,
            "group": groups,
            "word of the input": inputs,
        }

    def unit(self, form: Form) -> tuple[int, ...]:
        """All: the input is widened before anything is written."""
        return form.out.extents

    def overlap(self, form: Form, tensor: str) -> Gap | None:
        """Anywhere over its input."""
        return Gap(2 * form.source.size) if self.accepts(form) else None

    def scratch_bytes(self, form: Form) -> int:
        """The input, 16 bits an element."""
        return words(form.source.size) * 8


def together(channels: int) -> int:
    """How many channels to compute at a time: as many as are there, and eight where few or none of
    them are computed twice."""
    if channels % 8 == 0 or channels > 32:
        return 8
    return 4 if channels >= 4 else 2
