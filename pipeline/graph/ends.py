"""Inputs and outputs of a network, one or several, and their values side by side."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.tensor import IntArray, Tensor

if TYPE_CHECKING:
    from pipeline.graph.state import State


class OneEach:
    """Gives a network of one or several ``inputs`` and ``outputs`` ``input`` and ``output``.

    Attributes:
        starts: what is there before the first operator: inputs, and states as they are read.
        ends: what is there after the last: outputs, and states as the next call finds them.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    states: tuple[State, ...] = ()

    @property
    def starts(self) -> tuple[str, ...]:
        return (*self.inputs, *(each.read for each in self.states))

    @property
    def ends(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.outputs, *(each.made for each in self.states))))

    @property
    def input(self) -> str:
        """The one input; raises ThimbleError where there are several."""
        return self._only("inputs", self.inputs)

    @property
    def output(self) -> str:
        """The one output; raises ThimbleError where there are several."""
        return self._only("outputs", self.outputs)

    @property
    def start(self) -> str:
        """The one tensor that is there before all operators; raises ThimbleError likewise."""
        return self._only("inputs", self.starts)

    @property
    def end(self) -> str:
        """The one tensor that is there after all operators; raises ThimbleError likewise."""
        return self._only("outputs", self.ends)

    def _only(self, what: str, names: tuple[str, ...]) -> str:
        if len(names) > 1:
            cut = f", or model.outputs=[{names[0]}]" if what == "outputs" else ""
            kept = " and states" if len(names) > len(getattr(self, what)) else ""
            raise ThimbleError(
                f"{self.name} has {len(names)} {what}{kept}, and this takes networks of one: try "
                f"strategy=joint or ordinary{cut}"
            )
        return names[0]


def joined(parts: Sequence[IntArray]) -> IntArray:
    """Put (n, *shape) of each tensor side by side, (n, elements); one alone stays as it is."""
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([p.reshape(len(p), prod(p.shape[1:])) for p in parts], axis=1)


def apart(values: IntArray, tensors: Sequence[Tensor]) -> dict[str, IntArray]:
    """Take apart what ``joined`` has put together, by name."""
    if len(tensors) == 1:
        return {tensors[0].name: np.asarray(values, dtype=np.int64)}
    ends = np.cumsum([each.size for each in tensors])
    flat = values.reshape(len(values), ends[-1])
    parts = zip(tensors, np.split(flat, ends[:-1], axis=1), strict=True)
    return {of.name: part.reshape(len(part), *of.shape).astype(np.int64) for of, part in parts}
