"""A .tflite file as its operators and tensors: nothing is interpreted yet.

Field numbers follow TensorFlow's schema.fbs; tensors are read when an operator asks for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from math import isfinite, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tflite.BuiltinOperator import BuiltinOperator
from tflite.BuiltinOptions import BuiltinOptions
from tflite.TensorType import TensorType

from pipeline.errors import ThimbleError
from pipeline.importers import tflite_flatbuffer as flatbuffer
from pipeline.importers.base import chosen
from pipeline.importers.tflite_flatbuffer import Table
from pipeline.importers.tflite_sparse import dense

MOST_ELEMENTS = 1 << 26
"""Most elements of one tensor; no microcontroller's network has more."""

BORDERS = ("QUANTIZE", "DEQUANTIZE")
MOST_OPERATORS = 1 << 14
MOST_AXES = 8
MOST_PARTS = 3  # of a layer's name
OPERATIONS = {"CONV_2D": "/Conv2D", "DEPTHWISE_CONV_2D": "/depthwise"}
"""What Keras calls them in the names of their outputs."""


def _names(enumeration: type) -> Mapping[int, str]:
    return {code: name for name, code in vars(enumeration).items() if isinstance(code, int)}


OPERATORS, OPTIONS, TYPES = map(_names, (BuiltinOperator, BuiltinOptions, TensorType))


@dataclass(frozen=True)
class FileTensor:
    """A tensor as the file has it, batch axis included.

    Attributes:
        type: such as ``INT8``.
        scales, zero_points: one entry, or one for each index of ``axis``; empty for plain numbers.
        data: a constant's bytes; empty for activations.
        unsigned: the file has it as uint8, each integer 128 greater than here.
        variable: an operator keeps it from one call to the next.
        names: of all that a converter made one of, MODEL/LAYER/OPERATION each in Keras.
    """

    index: int
    name: str
    dims: tuple[int, ...]
    type: str
    _: KW_ONLY
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int
    data: memoryview
    unsigned: bool = False
    variable: bool = False
    names: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return prod(self.dims)

    @property
    def shape(self) -> tuple[int, ...]:
        """Without the batch axis, which is the first of two or more and has one entry; the first of
        more than three axes are one."""
        own = self.dims[1:] if len(self.dims) > 1 and self.dims[0] == 1 else self.dims or (1,)
        return own if len(own) < 4 else (prod(own[:-2]), *own[-2:])

    @property
    def scale(self) -> float:
        """The one scale of the whole tensor: a float32, as all scales in a file."""
        if len(self.scales) != 1:
            raise ThimbleError(
                f"{self.name} has {len(self.scales)} scales, and one for all its values is needed"
            )
        return self.scales[0]

    @property
    def zero_point(self) -> int:
        return self.zero_points[0] if self.zero_points else 0


@dataclass(frozen=True)
class Node:
    """An operator of the file; an input that is left out is None."""

    index: int
    kind: str
    inputs: tuple[FileTensor | None, ...]
    outputs: tuple[FileTensor, ...]
    options: Table | None
    options_type: str
    given: Mapping[str, Any] = field(default_factory=dict)
    """Options that are other than the file's."""

    @property
    def name(self) -> str:
        return f"{self.kind.lower()}_{self.index}"

    @property
    def layer(self) -> str:
        """The layer as Keras calls it: of what adds a bias, else of the last name of its kind, as
        others share the first ones, else of the first; ``name`` where the file doesn't say."""
        names, kind = self.outputs[0].names if self.outputs else (), OPERATIONS.get(self.kind)
        made = [name for name in names if name.endswith("/BiasAdd")]
        made += [name for name in reversed(names) if kind and name.rstrip("1").endswith(kind)]
        path = next(iter((*made, *names)), "").split("/")
        return "/".join(path[1:-1][-MOST_PARTS:]) or self.name

    @property
    def output(self) -> FileTensor:
        if len(self.outputs) != 1:
            raise ThimbleError(f"it has {len(self.outputs)} outputs, expected 1")
        return self.outputs[0]

    def input(self, position: int) -> FileTensor:
        found = self.inputs[position] if position < len(self.inputs) else None
        if found is None:
            raise ThimbleError(f"its input {position} is missing")
        return found

    def optional(self, position: int) -> FileTensor | None:
        return self.inputs[position] if position < len(self.inputs) else None


@dataclass(frozen=True)
class FileModel:
    """A subgraph of the file ``data``, the first one, which is what an interpreter runs, or the one
    of this ``number``, which that calls."""

    data: bytes
    number: int = 0
    held: set[int] = field(default_factory=set)
    """Tensors that are constants here, though operators make them in the file."""
    merged: dict[int, Node] = field(default_factory=dict)
    """Operators that stand for several of the file, in the place of the last one."""
    _tensors: dict[int, FileTensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.data[4:8] != b"TFL3":
            raise ThimbleError("it is no .tflite file: the mark TFL3 is missing")
        if not self.root.count(2):
            raise ThimbleError("the file holds no network")

    @cached_property
    def root(self) -> Table:
        return flatbuffer.root(self.data)

    @cached_property
    def subgraph(self) -> Table:
        return self.root.item(2, self.number)

    def part(self, number: int) -> FileModel:
        """Another subgraph of the file."""
        return FileModel(self.data, number)

    def inputs(self, needed: Iterable[int]) -> list[FileTensor]:
        """Return the model's inputs, but those that none of the operators ``needed`` reads."""
        indices = self.subgraph.numbers(1, "i4", 1024)
        if not indices:
            raise ThimbleError("the model has no inputs")
        read = {index for each in needed for index in self.operator(each)[1]}
        return [self.tensor(each) for each in indices if each in read or len(indices) == 1]

    def outputs(self, asked: Sequence[str] = ()) -> list[FileTensor]:
        """Return the model's outputs, or the tensors of the names ``asked``."""
        indices = self.subgraph.numbers(2, "i4", 1024)
        if indices and not asked:
            return [self.tensor(index) for index in dict.fromkeys(indices)]
        made = (self.operator(n)[2] for n in range(self.operators))
        every = {self.tensor(index).name: index for each in made for index in each}
        every |= {self.tensor(index).name: index for index in indices}
        names = [self.tensor(index).name for index in indices]
        return [self.tensor(every[name]) for name in chosen(asked, names, every)]

    @cached_property
    def operators(self) -> int:
        if (count := self.subgraph.count(3)) > MOST_OPERATORS:
            raise ThimbleError(f"the model has {count:,} operators, more than {MOST_OPERATORS:,}")
        return count

    def operator(self, index: int) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
        """(name such as ``CONV_2D``, its inputs, its outputs): tensor indices, -1 for none."""
        if (node := self.merged.get(index)) is not None:
            reads = tuple(-1 if each is None else each.index for each in node.inputs)
            return node.kind, reads, tuple(each.index for each in node.outputs)
        table = self.subgraph.item(3, index)
        code = self.root.item(1, table.scalar(0, "u32"))
        number = max(code.scalar(0, "i8"), code.scalar(3, "i32"))
        name = OPERATORS.get(number, f"operator number {number}")
        if name == "CUSTOM":
            name = f"custom operator {printable(code.text(1))}"
        return name, table.numbers(1, "i4", 1024), table.numbers(2, "i4", 1024)

    def node(self, index: int) -> Node:
        if index in self.merged:
            return self.merged[index]
        kind, inputs, outputs = self.operator(index)
        table = self.subgraph.item(3, index)
        return Node(
            index,
            kind,
            tuple(None if i == -1 else self.tensor(i) for i in inputs),
            tuple(self.tensor(i) for i in outputs),
            table.table(4),
            OPTIONS.get(table.scalar(3, "u8"), ""),
        )

    def tensor(self, index: int) -> FileTensor:
        if index not in self._tensors:
            self._tensors[index] = self._read(index)
        return self._tensors[index]

    def hold(self, index: int, values: NDArray[Any]) -> None:
        """Let a tensor of plain numbers be a constant."""
        tensor = self.tensor(index)
        stored = values.astype(np.dtype(tensor.type.lower())).tobytes()
        self._tensors[index] = replace(tensor, dims=values.shape, data=memoryview(stored))
        self.held.add(index)

    def is_open(self, index: int) -> bool:
        """Check whether the file leaves a size of a tensor other than the batch's open."""
        return -1 in self.subgraph.item(0, index).numbers(7, "i4", MOST_AXES)[1:]

    def settle(self, index: int, dims: tuple[int, ...]) -> None:
        """Let a tensor have the shape ``dims``."""
        self._tensors[index] = self._read(index, dims)

    def _read(self, index: int, known: tuple[int, ...] = ()) -> FileTensor:
        table = self.subgraph.item(0, index)
        names = tuple(map(printable, table.text(3).split(";")))
        name = names[0] or f"tensor {index}"
        kind = TYPES.get(table.scalar(1, "i8"), "an unknown type")
        dims = self._dims(table, name, known)
        quantization = table.table(4)
        scales: tuple[Any, ...] = ()
        zeros: tuple[Any, ...] = ()
        axis = 0
        if quantization is not None:
            scales = quantization.numbers(2, "f4", 1 << 16)
            zeros = quantization.numbers(3, "i8", 1 << 16)
            axis = quantization.scalar(6, "i32")
        if not all(isfinite(scale) and scale > 0 for scale in scales):
            raise ThimbleError(f"{name} has a scale that is no positive number")
        if len(zeros) not in (0, len(scales)):
            raise ThimbleError(f"{name} has {len(scales)} scales but {len(zeros)} zero points")
        data = self._buffer(table.scalar(2, "u32"))
        if (sparsity := table.table(6)) is not None:
            try:
                data = dense(sparsity, data, dims, np.dtype(kind.lower()).itemsize)
            except (IndexError, KeyError, TypeError, ValueError) as error:
                raise ThimbleError(f"{name} is sparse, and damaged: {error}") from None
        unsigned = kind == "UINT8" and bool(scales) and self.unsigned
        if unsigned:
            kind, zeros = "INT8", tuple(zero - 128 for zero in zeros or (0,) * len(scales))
            data = memoryview((np.frombuffer(data, np.uint8) ^ 128).tobytes())
        return FileTensor(
            index, name, dims, kind, scales=scales, zero_points=zeros, axis=axis, data=data,
            unsigned=unsigned, variable=bool(table.scalar(5, "bool")), names=names,
        )  # fmt: skip

    @cached_property
    def unsigned(self) -> bool:
        """Check whether it computes in uint8, as older files do: then tensors are int8
        here, 128 less. Only QUANTIZE may read pixels without that."""
        made = (self.operator(n) for n in range(self.operators))
        indices = [out for kind, _, outs in made if kind not in BORDERS for out in outs]
        types = (self.subgraph.item(0, index).scalar(1, "i8") for index in indices)
        return any(TYPES.get(each) == "UINT8" for each in types)

    def _dims(self, table: Table, name: str, known: tuple[int, ...]) -> tuple[int, ...]:
        dims = known or table.numbers(0, "i4", MOST_AXES)
        signature = known or table.numbers(7, "i4", MOST_AXES)
        if min(dims, default=1) < 1 or -1 in signature[1:]:
            raise ThimbleError(
                f"{name} has the shape {list(signature or dims)}: sizes that are only known at run "
                "time are not supported; convert the model with a fixed input shape"
            )
        if prod(dims) > MOST_ELEMENTS:
            raise ThimbleError(f"{name} has {prod(dims):,} elements, more than {MOST_ELEMENTS:,}")
        return dims

    def _buffer(self, index: int) -> memoryview:
        """Bytes of buffer ``index``; buffer 0 is always empty."""
        if index == 0 or index >= self.root.count(4):
            return memoryview(b"")
        table = self.root.item(4, index)
        start, size = table.scalar(1, "u64"), table.scalar(2, "u64")
        if start <= 1:
            return table.raw(0)
        if start + size > len(self.data):
            raise ThimbleError(f"the file is damaged: buffer {index} ends outside it")
        return memoryview(self.data)[start : start + size]


_SPECIAL = "\\\"'`*?<>&"
"""Characters with a meaning in C, in a shell or in HTML."""


def printable(text: str) -> str:
    """Return plain characters for messages, reports and C, at most 60 of them."""
    clean = "".join(
        c if c.isascii() and c.isprintable() and c not in _SPECIAL else "_" for c in text
    )
    return clean[-60:]
