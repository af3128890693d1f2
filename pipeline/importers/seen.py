"""A network as the tool sees it: what ``until=import`` shows, read before any stage runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from math import prod
from sys import stderr
from typing import TYPE_CHECKING, Any

from pipeline.config import instantiate
from pipeline.errors import reading
from pipeline.graph.graph import Graph
from pipeline.importers.base import Imported

if TYPE_CHECKING:
    from pipeline.importers.float_graph import FloatGraph

Row = dict[str, Any]


def seen(node: Mapping[str, Any]) -> dict[str, Any]:
    """Read the network of the config ``model``; one that is trained here has random weights.

    Returns:
        ``network``, a row for each input, state and operator, with ``layer``, ``operator``, what
        it ``reads``, its output's ``shape`` and ``type``, ``macs`` and ``weights``, ``weight_type``
        ("" without weights); ``macs`` and ``weights`` of all; ``quantized``: false of networks that
        are still to be quantized.

    Raises:
        Unreadable: what is not supported, and where it is.
    """
    with reading(), redirect_stdout(stderr):  # the user's own module may print
        network = _network(node)
        rows = _integers(network) if isinstance(network, Graph) else _floats(network)
    total = {key: sum(row[key] for row in rows) for key in ("macs", "weights")}
    return {"network": rows, **total, "quantized": isinstance(network, Graph)}


def _network(node: Mapping[str, Any]) -> Graph | FloatGraph:
    model = instantiate(node)
    if isinstance(model, Imported):
        return model.float_graph() or model.graph()
    from pipeline.importers.float_passes import simplified
    from pipeline.importers.torch_export import exported

    module = model.build().eval()
    return simplified(exported(node["name"], module, model.examples, model.step, model.states))


def _integers(graph: Graph) -> list[Row]:
    makers = {op.output: op.name for op in graph.operators}
    inputs = (graph.tensors[name] for name in graph.inputs)
    rows = [_row(each.name, "input", (), each.shape, str(each.dtype)) for each in inputs]
    for of in graph.states:
        kept = graph.tensors[of.read]
        rows.append(_row(of.read, "state", [makers[of.made]], kept.shape, str(kept.dtype)))
    for op in graph.operators:
        made, held = graph.tensors[op.output], [graph.tensors[name] for name in op.parameters]
        reads = [makers.get(name, name) for name in op.inputs]
        row = _row(op.name, type(op).__name__, reads, made.shape, str(made.dtype))
        work = {"macs": op.macs(graph.tensors), "weights": sum(tensor.size for tensor in held)}
        rows.append(row | work | ({"weight_type": str(held[0].dtype)} if held else {}))
    return rows


def _floats(graph: FloatGraph) -> list[Row]:
    from pipeline.importers.float_nodes import Weighted

    makers = {node.output: node.name for node in graph.nodes}
    rows = [_row(name, "input", (), graph.shapes[name], "float") for name in graph.inputs]
    for of in graph.states:
        rows.append(_row(of.read, "state", [makers[of.made]], graph.shapes[of.read], "float"))
    for node in graph.nodes:
        shape, reads = graph.shapes[node.output], [makers.get(name, name) for name in node.inputs]
        row = _row(node.name, type(node).__name__, reads, shape, "float")
        if isinstance(node, Weighted):
            count, places = node.weights.size, prod(shape) // len(node.weights)
            row |= {"macs": count * places, "weights": count + node.bias.size}
            row |= {"weight_type": "float" if node.steps is None else "int8"}
        rows.append(row)
    return rows


def _row(layer: str, kind: str, reads: Sequence[str], shape: Sequence[int], type_: str) -> Row:
    row = {"layer": layer, "operator": kind, "reads": list(reads), "shape": list(shape)}
    return {**row, "type": type_, "macs": 0, "weights": 0, "weight_type": ""}
