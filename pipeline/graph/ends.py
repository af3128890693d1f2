"""Inputs and outputs of a network, one or several, and their values side by side."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.tensor import IntArray, Tensor


class OneEach:
    """Gives a network of one or several ``inputs`` and ``outputs`` ``input`` and ``output``."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def input(self) -> str:
        """The one input; raises ThimbleError where there are several."""
        return self._only("inputs", self.inputs)

    @property
    def output(self) -> str:
        """The one output; raises ThimbleError where there are several."""
        return self._only("outputs", self.outputs)

    def _only(self, what: str, names: tuple[str, ...]) -> str:
        if len(names) > 1:
            cut = f", or model.outputs=[{names[0]}]" if what == "outputs" else ""
            raise ThimbleError(
                f"{self.name} has {len(names)} {what}, and this takes networks of one: try "
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
