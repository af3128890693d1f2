"""Writes small .tflite files with the generated schema, independently of the importer."""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import flatbuffers
import numpy as np
import numpy.typing as npt
from tflite.BuiltinOperator import BuiltinOperator
from tflite.BuiltinOptions import BuiltinOptions
from tflite.Padding import Padding
from tflite.TensorType import TensorType

Random = np.random.Generator
VALID = {"Padding": Padding.VALID, "StrideH": 1, "StrideW": 1}
Case = Callable[[Random], bytes]
"""A random network."""


def scale(rng: Random, low: float = 0.002, high: float = 0.2) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def zero(rng: Random) -> int:
    return int(rng.integers(-128, 128)) if rng.random() < 0.9 else int(rng.choice([-128, 127, 0]))


def sizes(rng: Random, most: int = 9, channels: int = 8) -> tuple[int, int, int]:
    height, width, depth = rng.integers(1, [most, most, channels], endpoint=True)
    return int(height), int(width), int(depth)


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

    def ints(self, values: npt.ArrayLike) -> int:
        """A constant of int32."""
        return self.constant(np.array(values, np.int32))

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

    def alone(
        self, kind: str, x: int, more: Sequence[int], y: int, options: str = "", **values: Any
    ) -> bytes:  # fmt: skip
        """The file, with the last operator: of the input ``x``, and ``more``, to the output."""
        self.operator(kind, [x, *more], [y], options, **values)
        return self.content([x], [y])

    def real(self, weights: str = "FLOAT32") -> Self:
        """Tell integers as the real numbers that they stand for.

        ``weights``: the type of constants; those of 8 bits are left as they are.
        """
        for number, each in enumerate(tuple(self.tensors)):
            data, scales, zeros = each["data"], each["scales"], each["zeros"]
            if not scales.size or (
                data is not None and weights == "INT8" and each["dtype"] != "INT32"
            ):
                continue
            each |= {"dtype": "FLOAT32", "scales": scales[:0], "zeros": zeros[:0], "data": None}
            if data is None:
                continue
            if data.shape != tuple(each["dims"]):  # of 4 bits, two in a byte
                data = np.stack([data << 4 >> 4, data >> 4], -1).reshape(-1)
                data = data[: np.prod(each["dims"])].reshape(each["dims"])
            shape = [1] * data.ndim
            if scales.size > 1:
                shape[each["axis"]] = scales.size
            each["data"] = (scales.reshape(shape) * (data - zeros.reshape(shape))).astype("f4")
            if weights == "FLOAT16":
                half = self.constant(each["data"].astype(np.float16))
                each["data"] = None
                self.operator("DEQUANTIZE", [half], [number])
                self.operators.insert(0, self.operators.pop())
        return self

    def content(
        self, inputs: Sequence[int], outputs: Sequence[int], once: "Writer | None" = None
    ) -> bytes:
        """``once``: a second subgraph, of no inputs."""
        graphs, held = [self, *([once] if once else [])], list[Any]()
        subgraphs, codes = list[Table](), list[Table]()
        for each, ends in zip(graphs, ((inputs, outputs), ((), ())), strict=False):
            tensors, operators = list[Table](), list[Table]()
            for tensor in each.tensors:
                held += [] if tensor["data"] is None else [tensor["data"]]
                tensors.append(_tensor(tensor, 0 if tensor["data"] is None else len(held)))
            for op in each.operators:
                operators.append(_operator(op, len(codes)))
                codes.append(_code(op["kind"]))
            subgraphs.append(Table("SubGraph", Tensors=tensors, Inputs=_ints(ends[0]),
                                   Outputs=_ints(ends[1]), Operators=operators))  # fmt: skip
        raw = [np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8) for values in held]
        buffers = [Table("Buffer"), *(Table("Buffer", Data=each) for each in raw)]
        model = Table("Model", Version=3, OperatorCodes=codes, Subgraphs=subgraphs, Buffers=buffers)
        builder = flatbuffers.Builder(4096)
        builder.Finish(model.written(builder), b"TFL3")
        return bytes(builder.Output())


class Table:
    """A table of the schema with the given fields: numbers, text, arrays, tables, lists of them."""

    def __init__(self, kind: str, **fields: Any) -> None:
        self.kind, self.fields = kind, fields

    def written(self, builder: flatbuffers.Builder) -> int:
        held = {name: _written(builder, value) for name, value in self.fields.items()}
        module = importlib.import_module(f"tflite.{self.kind}")
        getattr(module, f"{self.kind}Start")(builder)
        for name, value in held.items():
            if value is not None:
                getattr(module, f"{self.kind}Add{name}")(builder, value)
        return int(getattr(module, f"{self.kind}End")(builder))


def _written(builder: flatbuffers.Builder, value: Any) -> Any:
    if isinstance(value, Table):
        return value.written(builder)
    if isinstance(value, str):
        return builder.CreateString(value)
    if isinstance(value, list):
        places = [each.written(builder) for each in value]
        builder.StartVector(4, len(places), 4)
        for place in reversed(places):
            builder.PrependUOffsetTRelative(place)
        return builder.EndVector()
    if not isinstance(value, np.ndarray):
        return value
    # at an address that an interpreter may read any type from
    builder.StartVector(value.itemsize, value.size, 16)
    builder.head = builder.head - value.nbytes
    builder.Bytes[builder.head : builder.head + value.nbytes] = value.tobytes()
    return builder.EndVector()


def _ints(values: Sequence[int]) -> np.ndarray:
    return np.asarray(values, np.int32)


def _tensor(tensor: dict[str, Any], buffer: int) -> Table:
    signature, kind = tensor.get("signature"), tensor["dtype"]
    quantization = Table(
        "QuantizationParameters", Scale=tensor["scales"].astype(np.float32),
        ZeroPoint=tensor["zeros"].astype(np.int64), QuantizedDimension=tensor["axis"],
    )  # fmt: skip
    return Table(
        "Tensor", Shape=_ints(tensor["dims"]), Buffer=buffer, Name=tensor["name"],
        Type=getattr(TensorType, kind) if isinstance(kind, str) else kind,
        Quantization=quantization if len(tensor["scales"]) else None,
        ShapeSignature=None if signature is None else _ints(signature),
        IsVariable=tensor.get("variable"), Sparsity=tensor.get("sparsity"),
    )  # fmt: skip


def _code(kind: str) -> Table:
    custom = BuiltinOperator.CUSTOM
    if (number := getattr(BuiltinOperator, kind, None)) is None:
        fields = {"DeprecatedBuiltinCode": custom, "CustomCode": kind, "BuiltinCode": custom}
    else:
        fields = {"DeprecatedBuiltinCode": min(number, 127), "Version": 1, "BuiltinCode": number}
    return Table("OperatorCode", **fields)


def _operator(op: dict[str, Any], code: int) -> Table:
    options = op["options"]
    return Table(
        "Operator", OpcodeIndex=code, Inputs=_ints(op["in"]), Outputs=_ints(op["out"]),
        BuiltinOptionsType=getattr(BuiltinOptions, options, 0),
        BuiltinOptions=Table(options, **op["values"]) if options else None,
    )  # fmt: skip
