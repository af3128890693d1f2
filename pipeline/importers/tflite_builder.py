"""The integer graph while operators of a .tflite file are added to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.lookup import Lookup
from pipeline.graph.operators.placing import Concat, Rearrange, Reshape
from pipeline.graph.state import State, assigned_late
from pipeline.graph.tensor import DType, IntArray, Tensor
from pipeline.importers.moves import Move
from pipeline.importers.tflite_model import FileTensor

ADVICE = {
    "FLOAT32": "is float32, and the model is not float as a whole: convert it with full integer "
    "quantization (int8), or without any: float networks are quantized here",
    "UINT8": "is uint8, TensorFlow's older quantization: convert the model again, to int8",
    "INT16": "is int16: convert the model to int8 activations",
}
ANY = ("INT8", "UINT8", "INT16")
"""Types of the model's own ends."""


@dataclass(frozen=True)
class Real:
    """A number, or a truth value, for each of the 256 integers of the activation ``source``.

    ``quantize``: of sums, which are no such function, makes what a QUANTIZE makes of them.
    """

    source: str
    values: NDArray[Any]
    quantize: Callable[[FileTensor], None] | None = None


@dataclass
class Builder:
    """``made`` maps a file's tensor to the graph's tensor that holds it, as ``inputs`` and
    ``outputs`` do; ``sources`` and ``results`` are all inputs and outputs in the file;
    ``kinds``: types that the operator in hand may have, ``label``: its name;
    ``step``: what recurrent operators keep stays from one call to the next;
    ``stacked``: see ``TFLite``; ``pitches``: of a volume whose images have rows more than it, the
    tensor that has them, and how many rows an image has there;
    ``reals``: what isn't quantized; of variables ``handles`` are the names by tensor, ``reads`` the
    tensors that are read, ``assigned`` what becomes them."""

    file_bytes: int
    sources: Sequence[int]
    results: Sequence[int]
    inputs: dict[int, str] = field(default_factory=dict)
    outputs: dict[int, str] = field(default_factory=dict)
    kinds: Sequence[str] = ("INT8",)
    label: str = ""
    step: bool = False
    stacked: bool = False
    pitches: dict[str, tuple[str, int]] = field(default_factory=dict)
    reals: dict[int, Real] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    constants: dict[str, IntArray] = field(default_factory=dict)
    operators: list[Operator] = field(default_factory=list)
    made: dict[int, str] = field(default_factory=dict)
    handles: dict[int, str] = field(default_factory=dict)
    reads: dict[str, FileTensor] = field(default_factory=dict)
    assigned: dict[str, str] = field(default_factory=dict)
    _constant_bytes: int = 0

    def graph(
        self,
        name: str,
        states: tuple[State, ...] = (),
        initial: Mapping[str, IntArray] = MappingProxyType({}),
    ) -> Graph:
        if not self.operators:
            raise ThimbleError("the model computes nothing in integers")
        alive, read = [], {*self.outputs.values(), *(each.made for each in states)}
        for op in reversed(self.operators):  # some of several results may be of no use
            if op.output in read:
                alive.append(op)
                read.update(op.inputs)
        read |= {each.read for each in states}
        names = read | {*self.inputs.values()} | {name for op in alive for name in op.parameters}
        tensors = {name: tensor for name, tensor in self.tensors.items() if name in names}
        constants = {name: held for name, held in self.constants.items() if name in names}
        inputs = tuple(self.inputs[index] for index in self.sources)
        outputs = tuple(self.outputs[index] for index in self.results)
        operators = _named_apart(assigned_late(alive[::-1], states))
        ends = inputs, outputs
        return Graph(name, tensors, operators, constants, *ends, states=states, initial=initial)

    def source(self, tensor: FileTensor, kinds: Sequence[str] = ()) -> Tensor:
        """Return the activation that an operator reads."""
        require_type(tensor, kinds or self.kinds)
        if tensor.index not in self.made:
            if tensor.data:
                raise ThimbleError(f"{tensor.name} is a constant where an activation is expected")
            raise ThimbleError(f"nothing before it produces {tensor.name}")
        return self.tensors[self.made[tensor.index]]

    def target(
        self,
        tensor: FileTensor,
        kinds: Sequence[str] = (),
        shape: tuple[int, ...] | None = None,
        like: Tensor | None = None,
    ) -> Tensor:
        """Return a new activation for the file's ``tensor``.

        ``like`` gives the quantization of operators that move integers unchanged. A ``shape`` in
        which the operator makes it, when that differs from the file's: ``finish`` reshapes it.
        """
        require_type(tensor, kinds or self.kinds)
        if tensor.index in self.made:
            raise ThimbleError(f"{tensor.name} is there already")
        scales: tuple[float, ...] = (tensor.scale,)
        zero_point = tensor.zero_point
        if like is not None:
            scales, zero_point = like.scale, like.zero_point
        dtype = tensor.type.lower()
        found = self.fresh(tensor.name, shape or tensor.shape, dtype, scales, zero_point)
        self.made[tensor.index] = found.name
        return found

    def finish(self, tensor: FileTensor, made: Tensor) -> None:
        """Give ``made`` the file's shape, if it has another."""
        if made.shape != tensor.shape:
            self.made[tensor.index] = self.reshaped(made, tensor.shape).name

    def fresh(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: str,
        scales: tuple[float, ...],
        zero_point: int,
    ) -> Tensor:
        """Return a tensor of a name that is not yet taken."""
        kind = DType.parse(dtype)
        if not kind.minimum <= zero_point <= kind.maximum:
            raise ThimbleError(f"{name} has the zero point {zero_point}, which is no {dtype}")
        while name in self.tensors:
            name += "_"
        self.tensors[name] = Tensor(name, shape, kind, scales, zero_point)
        return self.tensors[name]

    def constant(
        self,
        name: str,
        values: NDArray[np.integer],
        dtype: str,
        scales: tuple[float, ...],
        zero_point: int = 0,
    ) -> Tensor:
        """Hold ``values`` in the graph; all together at most twice what the file has."""
        self._constant_bytes += values.size
        if self._constant_bytes > 2 * self.file_bytes:
            raise ThimbleError("its constants are far larger than the file")
        found = self.fresh(name, values.shape, dtype, scales, zero_point)
        self.constants[found.name] = values.astype(np.int64)
        return found

    def reshaped(self, source: Tensor, shape: tuple[int, ...]) -> Tensor:
        """Return the elements of ``source`` in another shape."""
        target = self.fresh(
            f"{source.name}_shaped", shape, str(source.dtype), source.scale, source.zero_point
        )
        name = f"view_{len(self.operators)}"
        self.operators.append(Reshape(name, (source.name,), target.name, shape=shape))
        return target

    def emit(self, kind: Callable[..., Operator], inputs: Sequence[str], output: str,
             **fields: Any) -> None:  # fmt: skip
        """Append the operator in hand."""
        self.operators.append(kind(self.label, tuple(inputs), output, **fields))

    def shaped(self, tensor: str, shape: tuple[int, ...]) -> str:
        source = self.tensors[tensor]
        return tensor if source.shape == shape else self.reshaped(source, shape).name

    def rearranged(self, tensor: str, move: Move) -> str:
        source, name = self.tensors[tensor], f"{self.label}_{len(self.operators)}"
        made = self.like(f"{tensor}_moved", source, move.shape)
        self.operators.append(Rearrange(name, (tensor,), made, **move.fields))
        return made

    def joined(self, tensors: Sequence[str], axis: int) -> str:
        """Tensors of one quantization; one that comes twice is copied."""
        names = list[str]()
        for name in tensors:
            source = self.tensors[name]
            again = name in names
            copied = self.mapped(source, unchanged(source), source.zero_point).name if again else ""
            names.append(copied or name)
        shape = list(self.tensors[tensors[0]].shape)
        shape[axis] = sum(self.tensors[name].shape[axis] for name in tensors)
        made = self.like(f"{tensors[0]}_joined", self.tensors[tensors[0]], tuple(shape))
        name = f"{self.label}_{len(self.operators)}"
        self.operators.append(Concat(name, tuple(names), made, axis=axis))
        return made

    def like(self, name: str, source: Tensor, shape: tuple[int, ...]) -> str:
        """Return a new tensor with the quantization of ``source``."""
        return self.fresh(name, shape, str(source.dtype), source.scale, source.zero_point).name

    def become(self, tensor: FileTensor, made: str) -> None:
        """Let ``made`` be the file's ``tensor``, under its name if an operator has just made it."""
        require_type(tensor, self.kinds)
        if tensor.index in self.made:
            raise ThimbleError(f"{tensor.name} is there already")
        made = self.shaped(made, tensor.shape)
        known = made in self.made.values()  # all of it is taken
        if known or not self.operators or self.operators[-1].output != made:
            made = self.reshaped(self.tensors[made], tensor.shape).name
        if tensor.name not in self.tensors:
            self.operators[-1] = replace(self.operators[-1], output=tensor.name)
            self.tensors[tensor.name] = replace(self.tensors.pop(made), name=tensor.name)
            made = tensor.name
        self.made[tensor.index] = made

    def mapped(
        self,
        source: Tensor,
        table: tuple[int, ...],
        zero_point: int,
        scale: tuple[float, ...] | None = None,
    ) -> Tensor:
        """Every stored integer replaced by the table's; of another ``scale``, if that is given."""
        dtype, name = str(source.dtype), f"{source.name}_mapped"
        target = self.fresh(name, source.shape, dtype, scale or source.scale, zero_point)
        name = f"map_{len(self.operators)}"
        self.operators.append(Lookup(name, (source.name,), target.name, table=table))
        return target


def _named_apart(operators: Iterable[Operator]) -> tuple[Operator, ...]:
    """Number the later ones of a layer that became several."""
    times, found = Counter[str](), list[Operator]()
    for op in operators:
        name = op.name
        while times[name]:
            times[op.name] += 1
            name = f"{op.name}.{times[op.name]}"
        times[name] += 1
        found.append(replace(op, name=name))
    return tuple(found)


def unchanged(source: Tensor) -> tuple[int, ...]:
    """Return the table of stored integers that stay what they are, whatever they are called."""
    return tuple(range(source.dtype.minimum, source.dtype.maximum + 1))


def require_type(tensor: FileTensor, kinds: Sequence[str]) -> None:
    if tensor.type not in kinds:
        advice = ADVICE.get(tensor.type, f"has the type {tensor.type.lower()}")
        raise ThimbleError(f"{tensor.name} {advice}")


def values_of(tensor: FileTensor, dtypes: Sequence[str]) -> NDArray[np.integer]:
    """Return a constant's integers in the file's shape; ``dtypes`` are TensorFlow's names."""
    if tensor.type not in dtypes:
        listed = " or ".join(kind.lower() for kind in dtypes)
        raise ThimbleError(f"{tensor.name} is {tensor.type.lower()}, expected {listed}")
    if not tensor.data:
        raise ThimbleError(f"{tensor.name} is computed at run time, but has to be a constant")
    if tensor.type == "INT4":
        return _nibbles(tensor).reshape(tensor.dims)
    kind = np.dtype(tensor.type.lower()).newbyteorder("<")
    if len(tensor.data) != tensor.size * kind.itemsize:
        raise ThimbleError(
            f"{tensor.name} has {len(tensor.data)} bytes, expected {tensor.size * kind.itemsize}"
        )
    return np.frombuffer(tensor.data, kind).reshape(tensor.dims)


def _nibbles(tensor: FileTensor) -> NDArray[np.integer]:
    """4-bit weights, low half first, one an int8."""
    packed = np.frombuffer(tensor.data, np.int8)
    if len(packed) != (tensor.size + 1) // 2:
        raise ThimbleError(f"{tensor.name} has {len(packed)} bytes for {tensor.size} 4-bit values")
    both = np.stack([packed << 4 >> 4, packed >> 4], axis=1)
    return both.reshape(-1)[: tensor.size]
