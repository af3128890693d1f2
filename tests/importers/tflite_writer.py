"""Writes small .tflite files with the generated schema, independently of the importer."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
from tflite.BuiltinOperator import BuiltinOperator
from tflite.BuiltinOptions import BuiltinOptions
from tflite.TensorType import TensorType


@dataclass
class Writer:
    """Tensors and operators in the order they are added; ``content`` is the file."""

    tensors: list[dict[str, Any]] = field(default_factory=list)
    operators: list[dict[str, Any]] = field(default_factory=list)

    def tensor(
        self,
        dims: Sequence[int],
        scale: float | Sequence[float] = (),
        zero: int | Sequence[int] = 0,
        dtype: str = "INT8",
        data: np.ndarray | None = None,
        axis: int = 0,
        **more: Any,
    ) -> int:
        """A tensor's index. ``data`` makes it a constant."""
        scales = np.atleast_1d(np.asarray(scale, np.float32))
        zeros = np.broadcast_to(np.asarray(zero, np.int64), scales.shape)
        number = len(self.tensors)
        self.tensors.append(
            {"dims": dims, "scales": scales, "zeros": zeros, "dtype": dtype, "data": data,
             "axis": axis, "name": f"net/tensor_{number};part", **more}
        )  # fmt: skip
        return number

    def constant(self, values: np.ndarray, *args: Any, **more: Any) -> int:
        dtype = more.pop("dtype", str(values.dtype).upper())
        return self.tensor(values.shape, *args, dtype=dtype, data=values, **more)

    def operator(
        self,
        kind: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        options: str = "",
        **values: Any,
    ) -> None:
        """``values`` are named as in the generated schema, such as StrideW."""
        self.operators.append(
            {"kind": kind, "in": inputs, "out": outputs, "options": options, "values": values}
        )

    def content(self, inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
        builder = flatbuffers.Builder(4096)
        buffers = [table(builder, "Buffer")]
        tensors = []
        for tensor in self.tensors:
            number = 0
            if tensor["data"] is not None:
                number = len(buffers)
                buffers.append(table(builder, "Buffer", Data=data(builder, tensor["data"])))
            tensors.append(write_tensor(builder, tensor, number))
        codes, operators = [], []
        for number, op in enumerate(self.operators):
            codes.append(write_code(builder, op["kind"]))
            operators.append(write_operator(builder, op, number))
        graph = table(
            builder, "SubGraph",
            Tensors=offsets(builder, tensors),
            Inputs=vector(builder, inputs, np.int32),
            Outputs=vector(builder, outputs, np.int32),
            Operators=offsets(builder, operators),
        )  # fmt: skip
        root = table(
            builder, "Model",
            Version=3,
            OperatorCodes=offsets(builder, codes),
            Subgraphs=offsets(builder, [graph]),
            Buffers=offsets(builder, buffers),
        )  # fmt: skip
        builder.Finish(root, b"TFL3")
        return bytes(builder.Output())


def table(builder: flatbuffers.Builder, kind: str, **values: Any) -> int:
    """A table of the schema with the given fields."""
    module = importlib.import_module(f"tflite.{kind}")
    getattr(module, f"{kind}Start")(builder)
    for name, value in values.items():
        if value is not None:
            getattr(module, f"{kind}Add{name}")(builder, value)
    return getattr(module, f"{kind}End")(builder)


def vector(builder: flatbuffers.Builder, values: Any, dtype: Any) -> int:
    return builder.CreateNumpyVector(np.asarray(values, dtype))


def offsets(builder: flatbuffers.Builder, items: Sequence[int]) -> int:
    builder.StartVector(4, len(items), 4)
    for item in reversed(items):
        builder.PrependUOffsetTRelative(item)
    return builder.EndVector()


def data(builder: flatbuffers.Builder, values: np.ndarray) -> int:
    """Bytes at an address that an interpreter may read any type from."""
    raw = np.ascontiguousarray(values).tobytes()
    builder.StartVector(1, len(raw), 16)
    builder.head = builder.head - len(raw)
    builder.Bytes[builder.head : builder.head + len(raw)] = raw
    return builder.EndVector()


def write_tensor(builder: flatbuffers.Builder, tensor: dict[str, Any], buffer: int) -> int:
    name = builder.CreateString(tensor["name"])
    shape = vector(builder, tensor["dims"], np.int32)
    signature = tensor.get("signature")
    signature = None if signature is None else vector(builder, signature, np.int32)
    quantization = None
    if len(tensor["scales"]):
        scales = vector(builder, tensor["scales"], np.float32)
        zeros = vector(builder, tensor["zeros"], np.int64)
        quantization = table(
            builder, "QuantizationParameters",
            Scale=scales, ZeroPoint=zeros, QuantizedDimension=tensor["axis"],
        )  # fmt: skip
    kind = tensor["dtype"]
    return table(
        builder, "Tensor",
        Shape=shape, Type=getattr(TensorType, kind) if isinstance(kind, str) else kind,
        Buffer=buffer, Name=name, Quantization=quantization, ShapeSignature=signature,
    )  # fmt: skip


def write_code(builder: flatbuffers.Builder, kind: str) -> int:
    if (number := getattr(BuiltinOperator, kind, None)) is None:
        custom = builder.CreateString(kind)
        number = BuiltinOperator.CUSTOM
        return table(
            builder, "OperatorCode",
            DeprecatedBuiltinCode=number, CustomCode=custom, BuiltinCode=number,
        )  # fmt: skip
    return table(
        builder, "OperatorCode",
        DeprecatedBuiltinCode=min(number, 127), Version=1, BuiltinCode=number,
    )  # fmt: skip


def write_operator(builder: flatbuffers.Builder, op: dict[str, Any], code: int) -> int:
    inputs, outputs = (vector(builder, op[side], np.int32) for side in ("in", "out"))
    options = None
    if op["options"]:
        options = table(builder, op["options"], **op["values"])
    return table(
        builder, "Operator",
        OpcodeIndex=code, Inputs=inputs, Outputs=outputs,
        BuiltinOptionsType=getattr(BuiltinOptions, op["options"], 0), BuiltinOptions=options,
    )  # fmt: skip
