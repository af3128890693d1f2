"""Content of an .onnx file, checked: the file is the user's, or damaged, or hostile."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import AttributeProto, TensorProto, numpy_helper

from pipeline.errors import ThimbleError
from pipeline.importers.base import chosen
from pipeline.importers.float_graph import Shape, checked_size
from pipeline.importers.onnx_external import ExternalFiles, is_external
from pipeline.importers.onnx_names import shown, text
from pipeline.importers.onnx_states import states

Array = npt.NDArray[Any]

DOMAINS = ("", "ai.onnx", "com.microsoft")
NEWEST_OPSET = 28
"""The newest whose changes to the supported operators were read."""

LARGEST_COUNT = 100_000
"""Nodes, or initializers."""

LARGEST_CONSTANT = 1 << 28
"""Elements."""

RULES = """
import sys
sys.path.append(sys.argv[1])
from onnx_cpp2py_export import shape_inference
known = shape_inference.infer_shapes(sys.stdin.buffer.read(), False, False, False)
sys.stdout.buffer.write(known)
"""
"""A program of its own, which a damaged file may end by a failed assertion; 50 ms, for it takes
only the compiled part of onnx."""

NUMPY_TYPES = (
    TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.INT8,
    TensorProto.UINT8, TensorProto.INT16, TensorProto.UINT16, TensorProto.INT32,
    TensorProto.INT64, TensorProto.BOOL,
)  # fmt: skip


@dataclass(frozen=True)
class FileNode:
    """One node; ``where`` is what messages call it. An input left out is "". ``refused``: why it
    can't be told as a node."""

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    where: str
    label: str
    refused: ThimbleError | None = None


@dataclass(frozen=True)
class FileInput:
    """``kind``: its element type, such as ``float32``."""

    name: str
    shape: Shape
    kind: str


@dataclass(frozen=True)
class OnnxFile:
    """The main graph.

    Attributes:
        channels_first: images are; else that is to be found out.
        names: of tensors for people, where they have others.
        step: see ``Imported``.
        states: what a call reads, beside ``inputs``, and the tensor that it is in the next one.
        shapes: of float tensors, as far as these are known without knowing the operators.
    """

    nodes: tuple[FileNode, ...]
    constants: Mapping[str, Array]
    inputs: tuple[FileInput, ...]
    outputs: tuple[str, ...]
    opset: int
    channels_first: bool = False
    names: Mapping[str, str] = field(default_factory=dict)
    step: bool = False
    states: tuple[tuple[FileInput, str], ...] = ()
    shapes: Callable[[], Mapping[str, Shape]] = dict


def read(
    content: bytes, external: ExternalFiles, outputs: Sequence[str] = (), sizes: Sequence[int] = (),
    state: Sequence[str] = (),
) -> OnnxFile:  # fmt: skip
    """Parse ``content``; ``external`` is where its constants may be; ``outputs``: see ``Imported``;
    ``sizes`` and ``state``: see ``Onnx``.

    Raises:
        ThimbleError: it is no ONNX file, or holds what is not supported.
    """
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except (DecodeError, ValueError, RecursionError):
        raise ThimbleError("it is not an ONNX file, or a damaged one") from None
    graph = model.graph
    if not graph.node:
        raise ThimbleError("it holds no operators: not an ONNX file, or a damaged one")
    if max(len(graph.node), len(graph.initializer)) > LARGEST_COUNT:
        raise ThimbleError(f"it has more than {LARGEST_COUNT:,} operators or constants")
    constants = {
        text(each.name): values(each, f"the constant {shown(each.name)}", external)
        for each in graph.initializer
    }
    if graph.sparse_initializer:
        raise ThimbleError("sparse constants are not supported")
    sources = [each for each in graph.input if text(each.name) not in constants]
    if not sources:
        raise ThimbleError("it has no inputs")
    _closed(sources, sizes)
    every = {shown(name): text(name) for node in graph.node for name in node.output}
    every |= {shown(each.name): text(each.name) for each in graph.output}
    starts = {shown(each.name): each for each in sources}
    extents = [{shown(each.name): _extents(each) for each in part}
               for part in (sources, graph.output)]  # fmt: skip
    kept = states(state, extents[0], extents[1], every)
    own = [name for each in graph.output if (name := shown(each.name)) not in kept.values()]
    results = tuple(every[name] for name in chosen(outputs, own, every))
    nodes = [_node(index, node, external) for index, node in enumerate(graph.node)]
    opsets = [each.version for each in model.opset_import if each.domain in ("", "ai.onnx")]
    if max(opsets, default=1) > NEWEST_OPSET:
        raise ThimbleError(
            f"it is of opset {max(opsets)}, whose operators may mean something else than those "
            f"known here, up to opset {NEWEST_OPSET}: export it with opset_version={NEWEST_OPSET} "
            "or less"
        )
    made = [every[name] for name in kept.values()]
    needed = _needed(nodes, (*results, *made)) if outputs else tuple(nodes)
    read = {name for node in needed for name in node.inputs}
    found = [each for name, each in starts.items() if name not in kept]
    given = [each for each in found if text(each.name) in read or len(found) == 1]
    return OnnxFile(
        needed,
        constants,
        tuple(FileInput(text(each.name), _shape(each), _kind(each)) for each in given),
        results,
        int(opsets[0]) if opsets else 1,
        states=tuple(
            (FileInput(text(starts[name].name), _shape(starts[name], True), "float32"), of)
            for name, of in zip(kept, made, strict=True)
        ),
        shapes=cache(partial(_inferred, model)),
    )


def _extents(value: onnx.ValueInfoProto) -> list[int]:
    return [int(dim.dim_value) for dim in value.type.tensor_type.shape.dim]


def _inferred(model: onnx.ModelProto) -> Mapping[str, Shape]:
    """Find the shapes of tensors by ONNX's own rules: only those with a batch of 1."""
    found = {}
    with suppress(Exception):  # whatever it raises of a damaged file: nothing is known then
        told = subprocess.run(
            [sys.executable, "-IS", "-c", RULES, Path(onnx.__file__).parent],
            input=model.SerializeToString(), capture_output=True, timeout=60, check=True,
        )  # fmt: skip
        model = onnx.ModelProto.FromString(told.stdout)
    for each in (*model.graph.value_info, *model.graph.output):
        with suppress(ThimbleError):
            if _kind(each) == "float32":
                found[text(each.name)] = _shape(each)
    return found


def _needed(nodes: Sequence[FileNode], outputs: Iterable[str]) -> tuple[FileNode, ...]:
    """Find the nodes that ``outputs`` depend on."""
    wanted, found = set(outputs), list[FileNode]()
    for node in reversed(nodes):
        if wanted & set(node.outputs):
            wanted |= set(node.inputs)
            found.append(node)
    return tuple(reversed(found))


def values(tensor: TensorProto, what: str, external: ExternalFiles) -> Array:
    """Return the elements of a constant."""
    if tensor.data_type not in NUMPY_TYPES:
        raise ThimbleError(f"{what} has elements of type {_type_name(tensor.data_type)}")
    shape = tuple(int(extent) for extent in tensor.dims)
    if len(shape) > 8 or any(extent < 0 for extent in shape):
        raise ThimbleError(f"{what} has the shape {list(shape)[:8]}")
    if prod(shape) > LARGEST_CONSTANT:
        raise ThimbleError(f"{what}: {list(shape)} are more than {LARGEST_CONSTANT:,} elements")
    if is_external(tensor):
        tensor = external.taken_in(tensor, what)
    try:
        found = np.asarray(numpy_helper.to_array(tensor))
    except (ValueError, TypeError, OverflowError):
        kind = _type_name(tensor.data_type)
        raise ThimbleError(f"{what} is damaged: no {list(shape)} of {kind} is in it") from None
    if found.shape != shape:
        raise ThimbleError(f"{what} is damaged: {found.size} elements for {list(shape)}")
    return found


def _node(index: int, node: onnx.NodeProto, external: ExternalFiles) -> FileNode:
    name = shown(node.name or (node.output[0] if node.output else "")) or f"node {index}"
    where = f"{name} ({shown(node.op_type) or 'no operator'})"
    if text(node.domain) not in DOMAINS:
        raise ThimbleError(f"{where}: operators of {shown(node.domain)} are not supported")
    attributes = {text(each.name): _attribute(each, where, external) for each in node.attribute}
    return FileNode(
        text(node.op_type), tuple(text(each) for each in node.input),
        tuple(text(each) for each in node.output), attributes, where, name,
    )  # fmt: skip


KINDS = {
    "i": AttributeProto.INT, "f": AttributeProto.FLOAT, "s": AttributeProto.STRING,
    "ints": AttributeProto.INTS, "floats": AttributeProto.FLOATS, "t": AttributeProto.TENSOR,
}  # fmt: skip
"""Types of attributes by the field that holds them."""


def _attribute(attribute: AttributeProto, where: str, external: ExternalFiles) -> Any:
    said = (KINDS.get(each.name) for each, _ in attribute.ListFields())
    kind = attribute.type or next(filter(None, said), None)  # files of 2017 don't say it
    if kind == AttributeProto.INT:
        return int(attribute.i)
    if kind == AttributeProto.FLOAT:
        return float(attribute.f)
    if kind == AttributeProto.STRING:
        return attribute.s.decode(errors="replace")
    if kind == AttributeProto.INTS:
        return tuple(int(each) for each in attribute.ints)
    if kind == AttributeProto.FLOATS:
        return tuple(float(each) for each in attribute.floats)
    if kind == AttributeProto.TENSOR:
        return values(attribute.t, f"{where}: {shown(attribute.name)}", external)
    return None  # of a type that no supported operator has: a list of texts, a graph


def _closed(sources: Sequence[onnx.ValueInfoProto], sizes: Sequence[int]) -> None:
    """Give the axes that the file leaves open, other than the batch's, their ``sizes``."""
    every = [each.type.tensor_type.shape.dim for each in sources]
    batch = {dims[0].dim_param for dims in every if dims} - {""}
    opened = list[Any]()
    for dim in (dim for dims in every for dim in dims[1:] if not dim.dim_value):
        if dim.dim_param in batch:
            dim.dim_value = 1
        else:
            opened.append(dim)
    if sizes and len(sizes) != len(opened):
        raise ThimbleError(f"model.sizes={list(sizes)}: it leaves {len(opened)} axes open")
    for dim, size in zip(opened, sizes, strict=False):
        dim.dim_value = size


def _shape(value: onnx.ValueInfoProto, kept: bool = False) -> Shape:
    """Return the input's shape; a batch axis left open becomes 1. Of a state, ``kept``, the first
    axis may be another, such as layers."""
    extents = []
    for axis, dim in enumerate(value.type.tensor_type.shape.dim):
        extent = int(dim.dim_value)
        if not extent and axis:
            raise ThimbleError(
                f"the input {shown(value.name)} leaves its axis {axis} open "
                f"({shown(dim.dim_param) or 'no size'}): export it with a fixed size, or give "
                "those of such axes in order, as model.sizes=[320,320]"
            )
        extents.append(extent or 1)
    if len(extents) > 4:
        raise ThimbleError(
            f"the input {shown(value.name)} has the shape {extents}: up to 4 axes work"
        )
    if len(extents) > 1 and extents[0] != 1 and not kept:
        raise ThimbleError(
            f"the input {shown(value.name)} is a batch of {extents[0]}: export it with a batch of 1"
        )
    return checked_size(f"the input {shown(value.name)}", tuple(extents) or (1,))


def _kind(value: onnx.ValueInfoProto) -> str:
    kind = value.type.tensor_type.elem_type
    names: dict[int, str] = {
        TensorProto.FLOAT: "float32",
        TensorProto.FLOAT16: "float32",
        TensorProto.INT8: "int8",
        TensorProto.UINT8: "uint8",
    }
    if kind not in names:
        raise ThimbleError(
            f"the input {shown(value.name)} has elements of type {_type_name(kind)}; float, int8 "
            "and uint8 are supported; what only chooses, such as a rate, is fixed by the export"
        )
    return names[kind]


def _type_name(kind: int) -> str:
    names: dict[int, str] = {value: name for name, value in TensorProto.DataType.items()}
    return names.get(kind, str(kind))
