"""Tensors that live from one call to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pipeline.errors import ThimbleError
from pipeline.graph.operator import Operator
from pipeline.graph.tensor import IntArray, Tensor


@dataclass(frozen=True)
class State:
    """What a call finds in the tensor ``read`` before its first step is what the one before it left
    in ``made``; the first call finds initial values (``Graph.initial``)."""

    read: str
    made: str


def check(
    name: str,
    states: Sequence[State],
    tensors: Mapping[str, Tensor],
    initial: Mapping[str, IntArray],
    operators: Sequence[Operator],
) -> None:
    """
    Raises:
        ThimbleError: states of the graph ``name`` that mean nothing.
    """
    made = {op.output for op in operators}
    for of in states:
        read, after, values = tensors[of.read], tensors.get(of.made), initial.get(of.read)
        if after is None or of.made not in made:
            raise ThimbleError(f"{name}: no operator makes {of.made}, which {of.read} becomes")
        if not any(of.read in op.inputs for op in operators):
            raise ThimbleError(f"{name}: no operator reads the state {of.read}")
        if replace(after, name=read.name) != read:
            raise ThimbleError(
                f"{name}: {of.made} {list(after.shape)} becomes the state {of.read} "
                f"{list(read.shape)} of the next call: shape, type and quantization have to agree"
            )
        low, high = read.dtype.minimum, read.dtype.maximum
        if values is None or values.shape != read.shape or (values != values.clip(low, high)).any():
            raise ThimbleError(f"{name}: the state {of.read} has no initial values of its shape")
    for names in ([of.read for of in states], [of.made for of in states]):
        if twice := [each for n, each in enumerate(names) if each in names[:n]]:
            raise ThimbleError(f"{name}: two states have {twice[0]}")


def assigned_late(operators: Sequence[Operator], states: Sequence[State]) -> tuple[Operator, ...]:
    """Put what makes a state behind all that reads the same, so that it may overwrite that."""
    found, made = list(operators), {each.made for each in states}
    for op in operators:
        if op.output in made:
            inputs, n = set(op.inputs), found.index(op)
            others = [at for at, each in enumerate(found) if inputs & {*each.inputs}]
            readers = [at for at, each in enumerate(found) if op.output in each.inputs]
            last = min(max(others, default=n), min(readers, default=len(found)) - 1)
            found.remove(op)
            found.insert(last, op)
    return tuple(found)
