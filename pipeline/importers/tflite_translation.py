"""Nodes and constants of an ONNX network that a .tflite file is told in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tflite.ActivationFunctionType import ActivationFunctionType

from pipeline.errors import ThimbleError
from pipeline.importers.onnx_file import Array, FileNode
from pipeline.importers.tflite_builder import values_of
from pipeline.importers.tflite_model import FileTensor, Node
from pipeline.importers.tflite_operator import LIMITS, Options, axis_of

TO_ONNX, FROM_ONNX = (0, 3, 1, 2), (0, 2, 3, 1)
"""Orders of the axes of images."""

FLOATS = ("FLOAT32", "FLOAT16")
INTEGERS = ("INT32", "INT64")
QUANTIZED = ("INT8", "UINT8", "INT4")


@dataclass
class Translation:
    """Nodes and constants so far; ``where`` and ``label`` are of the operator in hand.

    Attributes:
        dequantized: constants of 8 or 16 bits by the tensors that operators know them as.
    """

    nodes: list[FileNode] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    dequantized: dict[int, FileTensor] = field(default_factory=dict)
    where: str = ""
    label: str = ""

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Append a node; return the name of its output, a new one if not said."""
        output = output or f"between {len(self.nodes)}"
        outputs = (output,)
        self.nodes.append(FileNode(operator, inputs, outputs, attributes, self.where, self.label))
        return output

    def held(self, values: Any, kind: str = "float32") -> str:
        """Hold ``values`` as a constant."""
        name = f"constant {len(self.constants)}"
        self.constants[name] = np.array(values, kind)
        return name

    def integers(self, values: Sequence[int]) -> str:
        return self.held(values, "int64")

    def constant(self, tensor: FileTensor, axes: Sequence[int] = (), rank: int = 0) -> str:
        """Hold a constant, of ``rank`` axes if it has fewer, in the order ``axes``."""
        tensor = self.dequantized.get(tensor.index, tensor)
        values = values_of(tensor, (*FLOATS, *QUANTIZED))
        values = values.reshape((1,) * (rank - values.ndim) + values.shape)
        axes = axes or (TO_ONNX if values.ndim == 4 else range(values.ndim))
        if len(axes) != values.ndim:
            raise ThimbleError(f"{tensor.name} has the shape {list(tensor.dims)}")
        if tensor.type in FLOATS:
            return self.held(values.transpose(axes))
        span = np.iinfo(values.dtype)
        if not tensor.scales or not all(span.min <= z <= span.max for z in tensor.zero_points):
            raise ThimbleError(f"{tensor.name} has no scale, or zero points of another type")
        each, kind = len(tensor.scales) > 1, str(values.dtype)
        scales = self.held(tensor.scales if each else tensor.scale)
        zeros = self.held(tensor.zero_points or 0 if each else tensor.zero_point, kind)
        axis = list(axes).index(axis_of(tensor.axis, tensor) + values.ndim - len(tensor.dims))
        stored = self.held(values.transpose(axes), kind)
        return self.add("DequantizeLinear", stored, scales, zeros, axis=axis)

    def operand(self, tensor: FileTensor, rank: int) -> str:
        """Name an operand that broadcasts to ``rank`` axes, a constant or an activation."""
        if self.is_constant(tensor):
            return self.constant(tensor, rank=rank)
        if len(tensor.dims) == rank:
            return named(tensor)
        dims = (1,) * (rank - len(tensor.dims)) + tensor.dims
        shaped = self.add("Reshape", self.plain(tensor), self.integers(dims))
        return self.add("Transpose", shaped, perm=TO_ONNX) if rank == 4 else shaped

    def is_constant(self, tensor: FileTensor) -> bool:
        return bool(tensor.data) or tensor.index in self.dequantized

    def plain(self, tensor: FileTensor) -> str:
        """Name ``tensor`` with its axes as the file has them."""
        if len(tensor.dims) != 4:
            return named(tensor)
        return self.add("Transpose", named(tensor), perm=FROM_ONNX)

    def shaped(self, plain: str, target: FileTensor) -> None:
        """Make ``target`` of the elements of ``plain``, which has the file's axes."""
        shape = self.integers(target.dims)
        if len(target.dims) != 4:
            self.add("Reshape", plain, shape, output=named(target))
            return
        made = self.add("Reshape", plain, shape)
        self.add("Transpose", made, perm=TO_ONNX, output=named(target))

    def fitted(self, made: str, dims: Sequence[int], target: FileTensor) -> None:
        """Make ``target`` of ``made``, which the file would have as ``dims``."""
        if tuple(dims) == target.dims:
            self.add("Identity", made, output=named(target))
            return
        image = len(dims) == 4
        self.shaped(self.add("Transpose", made, perm=FROM_ONNX) if image else made, target)

    def activated(self, made: str, options: Options, target: FileTensor) -> None:
        """Make ``target`` of ``made`` by the fused activation."""
        if not (number := options.get("activation", 0)):
            self.add("Identity", made, output=named(target))
            return
        if number not in (*LIMITS, ActivationFunctionType.TANH):
            raise ThimbleError(f"its fused activation {number} is not supported")
        limits = [self.held(each) for each in LIMITS.get(number, ())]
        self.add("Clip" if limits else "Tanh", made, *limits, output=named(target))


def named(tensor: FileTensor) -> str:
    return f"tensor {tensor.index}"


def in_onnx(tensor: FileTensor) -> tuple[int, ...]:
    """Return the tensor's shape."""
    dims = tensor.dims
    return tuple(dims[axis] for axis in TO_ONNX) if len(dims) == 4 else dims


def axis_in_onnx(axis: int, tensor: FileTensor) -> int:
    axis = axis_of(axis, tensor)
    return TO_ONNX.index(axis) if len(tensor.dims) == 4 else axis


Rule = Callable[[Translation, Node, Options], None]
