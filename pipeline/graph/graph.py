"""The integer graph that every stage after ``quantize`` works on."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from pipeline import codec
from pipeline.artifacts import read_json, read_npz, write_json, write_npz
from pipeline.errors import ThimbleError
from pipeline.graph import operators as operator_package
from pipeline.graph.ends import OneEach, apart, joined
from pipeline.graph.operator import BoxValues, Operator
from pipeline.graph.requant import FixedPoint, Mean, PowerOfTwo, UnsignedMean
from pipeline.graph.state import State, check
from pipeline.graph.tensor import DType, IntArray, Tensor, beside


@dataclass(frozen=True)
class Graph(OneEach):
    """Operators in topological order over integer tensors.

    Attributes:
        tensors: every activation and constant by name.
        operators: each output is produced by exactly one operator.
        constants: integer values of the constant tensors.
        inputs, outputs: names of what a frame gives and of its results, which live until the next.
        states: what lives from one call to the next; ``initial``: what the first one reads of them.
    """

    name: str
    tensors: Mapping[str, Tensor]
    operators: tuple[Operator, ...]
    constants: Mapping[str, IntArray]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    states: tuple[State, ...] = ()
    initial: Mapping[str, IntArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = {*self.starts, *self.constants}
        for op in self.operators:
            for name in (*op.inputs, *op.parameters):
                if name not in known:
                    raise ThimbleError(f"{op.name} reads {name}, which nothing before it produces")
            if op.output in known:
                raise ThimbleError(f"{op.name} makes {op.output}, which is there already")
            shape = op.infer(self.tensors)
            if shape != self.tensors[op.output].shape:
                raise ThimbleError(
                    f"{op.name} makes {shape}, but {op.output} is {self.tensors[op.output].shape}"
                )
            known.add(op.output)
        if missing := [name for name in self.outputs if name not in known]:
            raise ThimbleError(f"nothing produces the output {missing[0]}")
        check(self.name, self.states, self.tensors, self.initial, self.operators)
        for ends in (self.inputs, self.outputs):
            if len(set(ends)) < len(ends) or not ends:
                raise ThimbleError(f"{self.name} has no inputs or outputs, or one twice: {ends}")
        if len({op.name for op in self.operators}) < len(self.operators):
            raise ThimbleError(f"{self.name} has two operators of one name")
        for name, values in self.constants.items():
            tensor = self.tensors[name]
            if values.shape != tensor.shape:
                raise ThimbleError(f"{name} has shape {values.shape}, expected {tensor.shape}")
            if values.size and not (
                tensor.dtype.minimum <= values.min() and values.max() <= tensor.dtype.maximum
            ):
                raise ThimbleError(f"{name} has values outside {tensor.dtype}")

    @property
    def state_bytes(self) -> float:
        return sum(self.tensors[each.read].bytes for each in self.states)

    def beside(self, tensor: str, word: str) -> str:
        """Return a name for something that belongs to ``tensor``, see ``tensor.beside``."""
        return beside(self.tensors, tensor, word)

    def producer(self, tensor: str) -> Operator:
        return next(op for op in self.operators if op.output == tensor)

    def operator(self, name: str) -> Operator:
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Operator]:
        return {op.name: op for op in self.operators}

    @property
    def macs(self) -> int:
        return sum(op.macs(self.tensors) for op in self.operators)

    @property
    def weight_bytes(self) -> float:
        return sum(self.tensors[name].bytes for name in self.constants)

    def constant(self, name: str) -> BoxValues:
        return BoxValues(self.tensors[name].box, np.asarray(self.constants[name], np.int64)[None])

    def run(self, frames: IntArray) -> dict[str, IntArray]:
        """Return the exact integer reference: every activation for ``frames`` (n, *input shape); of
        several inputs (n, elements), one after the other. With states they are the frames of
        calls, the first one of which finds the initial values."""
        values = apart(frames, [self.tensors[name] for name in self.inputs])
        if not self.states:
            return self._run(values)
        calls, found = list[dict[str, IntArray]](), dict(self.initial)
        for number in range(len(frames)):
            given = {name: each[number : number + 1] for name, each in values.items()}
            calls.append(self._run(given | {name: each[None] for name, each in found.items()}))
            found = {each.read: calls[-1][each.made][0] for each in self.states}
        return {name: np.concatenate([call[name] for call in calls]) for name in calls[0]}

    def _run(self, values: dict[str, IntArray]) -> dict[str, IntArray]:
        """Return every activation, given those before all operators."""
        for op in self.operators:
            box = self.tensors[op.output].box
            regions = {name: BoxValues(self.tensors[name].box, values[name]) for name in op.inputs}
            regions |= {name: self.constant(name) for name in op.parameters}
            acc = op.accumulate(self.tensors, box, regions)
            values[op.output] = op.finish(self.tensors, box, acc, regions)
        return values

    def evaluate(self, frames: IntArray, batch: int = 500) -> IntArray:
        """(n, *input shape) -> (n, *output shape), a batch at a time; of several inputs or outputs
        (n, elements), one after the other."""
        batch = len(frames) if self.states else batch
        parts = (self.run(frames[i : i + batch]) for i in range(0, len(frames), batch))
        return np.concatenate([joined([part[name] for name in self.outputs]) for part in parts])

    def save(self, folder: Path) -> None:
        """Write ``graph.json`` and ``graph.npz``, constants in the narrowest type numpy has."""
        narrow = {
            name: values.astype(self.tensors[name].dtype.stored)
            for name, values in {**self.constants, **self.initial}.items()
        }
        write_npz(folder / "graph.npz", narrow)
        content = {
            "name": self.name,
            "tensors": [codec.encode(tensor) for tensor in self.tensors.values()],
            "operators": codec.encode(self.operators),
            "inputs": self.inputs,
            "outputs": self.outputs,
        }
        if self.states:
            content["states"] = codec.encode(self.states)
        write_json(folder / "graph.json", content)

    @classmethod
    def load(cls, folder: Path) -> Graph:
        content = read_json(folder / "graph.json")
        try:
            tensors = codec.decode(content["tensors"], _classes())
            states = codec.decode(content.get("states", []), _classes())
            reads = {each.read for each in states}
            stored = read_npz(folder / "graph.npz")
            values = {name: held.astype(np.int64) for name, held in stored.items()}
            return cls(
                content["name"],
                {tensor.name: tensor for tensor in tensors},
                codec.decode(content["operators"], _classes()),
                {name: held for name, held in values.items() if name not in reads},
                tuple(content["inputs"]),
                tuple(content["outputs"]),
                states=states,
                initial={name: held for name, held in values.items() if name in reads},
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ThimbleError(f"{folder / 'graph.json'} is damaged: {error}") from None

    @cached_property
    def hash(self) -> str:
        """A short hash of structure and constants, for provenance."""
        digest = hashlib.sha256(repr((self.tensors, self.operators)).encode())
        if self.states:
            digest.update(repr(self.states).encode())
        held = {**self.constants, **self.initial}
        for name in sorted(held):
            digest.update(name.encode() + np.ascontiguousarray(held[name]).tobytes())
        return digest.hexdigest()[:16]


@cache
def _classes() -> dict[str, type]:
    """Return every operator in ``operators/`` and the value classes they hold."""
    kinds = (Tensor, DType, State, PowerOfTwo, FixedPoint, Mean, UnsignedMean)
    found: dict[str, type] = {kind.__name__: kind for kind in kinds}
    for module in pkgutil.iter_modules(operator_package.__path__):
        members = vars(importlib.import_module(f"{operator_package.__name__}.{module.name}"))
        found |= {
            name: member
            for name, member in members.items()
            if inspect.isclass(member) and issubclass(member, Operator)
        }
    return found
