"""Float operators in the midst of a quantized .tflite file, between DEQUANTIZE and QUANTIZE: a
function of one value, whatever they are, is a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.operators.lookup import Lookup
from pipeline.importers.tflite_builder import Builder
from pipeline.importers.tflite_model import FileModel, FileTensor, Node
from pipeline.importers.tflite_operator import Entry


@dataclass(frozen=True)
class Island:
    """The ``operators``, in order, that make a float tensor of ``start``, which the operator
    ``first`` makes of the integers ``source``."""

    model: FileModel
    first: int
    operators: Sequence[int]
    source: FileTensor
    start: FileTensor


def islands(model: FileModel, needed: Sequence[int]) -> dict[int, Island]:
    """Find what lies between integers, by the QUANTIZE that ends it."""
    makers = {made: index for index in needed for made in model.operator(index)[2]}
    ends = ((index, model.operator(index)) for index in needed)
    given = {index: reads[0] for index, (kind, reads, _) in ends if kind == "QUANTIZE" and reads}
    found = {index: _before(model, makers, tensor) for index, tensor in given.items()}
    return {index: island for index, island in found.items() if island and island.operators}


def _before(model: FileModel, makers: Mapping[int, int], end: int) -> Island | None:
    """Walk back from ``end``; None where it depends on more than one tensor of integers."""
    starts, inside, waiting = set[int](), set[int](), [end]
    while waiting:
        tensor = waiting.pop()
        if tensor < 0 or model.tensor(tensor).data:
            continue
        if tensor not in makers:
            return None
        kind, reads, _ = model.operator(makers[tensor])
        if model.tensor(tensor).type != "FLOAT32":
            return None
        if kind == "DEQUANTIZE" and reads and not model.tensor(reads[0]).data:
            starts.add(tensor)
        elif makers[tensor] not in inside:
            inside.add(makers[tensor])
            waiting += reads
    if len(starts) != 1:
        return None
    (start,) = starts
    first = makers[start]
    source = model.tensor(model.operator(first)[1][0])
    return Island(model, first, sorted(inside), source, model.tensor(start))


def tabled(build: Builder, node: Node, island: Island, entries: Mapping[str, Entry]) -> None:
    """Make what the QUANTIZE ``node`` makes of the integers before ``island``."""
    from pipeline.importers import onnx, tflite_float  # with them comes PyTorch
    from pipeline.importers.deferred import torch
    from pipeline.importers.float_nodes import Function

    source = build.source(island.source)
    told = tflite_float.translated(
        island.model, [island.start], [node.input(0)], island.operators, entries
    )
    graph, _ = onnx.entered(node.name, told, None)
    only, *others = graph.nodes
    if others or not isinstance(only, Function):
        raise ThimbleError(
            f"float operators from {island.start.name} on, which are no function of one value: "
            "convert the model so that these are int8, too"
        )
    target, each = build.target(node.output, shape=source.shape), np.arange(-128, 128)
    real = np.float32(source.scale[0]) * (each - source.zero_point).astype(np.float32)
    steps = np.nan_to_num(only.body(torch.from_numpy(real)).numpy() / np.float32(target.scale[0]))
    rounded = np.trunc(steps + np.copysign(0.5, steps)).clip(-1024, 1024) + target.zero_point
    table = tuple(int(q) for q in target.dtype.clip(rounded.astype(np.int64)))
    build.operators.append(Lookup(node.name, (source.name,), target.name, table=table))
    build.finish(node.output, target)
