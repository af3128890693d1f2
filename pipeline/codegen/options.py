"""Choices of a user for the C besides its plan, and what a build has found out about it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.errors import ThimbleError
from pipeline.graph.tensor import Tensor
from pipeline.prefix import DEFAULT, Prefix

MOST_NUMBERED = 64
"""Outputs that have their numbers for labels, where no others are given."""


@dataclass(frozen=True)
class Stack:
    """The deepest stack of any function of ``model.h``, and which compiler made it so deep."""

    bytes: int
    compiler: str


@dataclass(frozen=True)
class Options:
    """
    Attributes:
        prefix: of all names, see ``Prefix``.
        labels: of the outputs, in their order; empty: their numbers.
        stack: for the header; None where it is not known.
        stepped: ``nn_stepped`` is called after each step, for ``pipeline/targets/stepped.py``.
    """

    prefix: str = DEFAULT
    labels: tuple[str, ...] = ()
    stack: Stack | None = None
    stepped: bool = False

    @property
    def names(self) -> Prefix:
        return Prefix(self.prefix)

    def labels_in_c(self, outputs: Sequence[Tensor]) -> list[str]:
        """String literals of the one output's; none where they are too many to be numbered.

        Raises:
            ThimbleError: for more or fewer labels than outputs, or what is no line of text.
        """
        return [_literal(label) for label in self._named(outputs)]

    def label_bytes(self, outputs: Sequence[Tensor]) -> int:
        """Count the bytes of the longest label, with the 0 that ends it; 0 without labels."""
        return max((len(label.encode()) + 1 for label in self._named(outputs)), default=0)

    def _named(self, outputs: Sequence[Tensor]) -> tuple[str, ...]:
        output = outputs[0]
        if not self.labels and (output.size > MOST_NUMBERED or len(outputs) > 1):
            return ()
        labels = self.labels or tuple(map(str, range(output.size)))
        if len(labels) != output.size or len(outputs) > 1:
            raise ThimbleError(
                f"codegen.labels has {len(labels)} names, the network {output.size} outputs "
                f"({output.name}): give one for each, or none"
            )
        return labels


def _literal(label: str) -> str:
    if not label.isprintable():
        raise ThimbleError(f"codegen.labels has {label!r}: a label is one line of text")
    plain = re.sub(r'(["\\?])', r"\\\1", label).encode()
    # octal, of three digits always: what follows cannot be taken for a fourth
    return '"' + "".join(chr(b) if b < 128 else f"\\{b:03o}" for b in plain) + '"'
