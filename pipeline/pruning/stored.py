"""A float network as arrays: what ``pruned.npz`` holds of one that is no chain of layers."""

import inspect
import json
from dataclasses import fields, replace
from typing import Any

import numpy as np

from pipeline.artifacts import Arrays
from pipeline.codec import decode, encode
from pipeline.importers import float_nodes
from pipeline.importers.float_graph import Affine, FloatGraph, Node
from pipeline.importers.functions import Composed, Step

GRAPH = "float_graph"
"""The name of the array that says what the others are."""

CLASSES = {each.__name__: each for each in (Affine, Composed, Step)} | {
    name: each
    for name, each in inspect.getmembers(float_nodes, inspect.isclass)
    if issubclass(each, Node)
}


def to_arrays(network: FloatGraph) -> Arrays:
    """``float_graph``, its JSON with names in place of arrays, and the arrays."""
    arrays: Arrays = {}
    nodes = []
    for index, node in enumerate(network.nodes):
        held = {
            field.name: f"{index}.{field.name}"
            for field in fields(node)
            if isinstance(getattr(node, field.name), np.ndarray)
        }
        arrays |= {place: getattr(node, name) for name, place in held.items()}
        values: dict[str, Any] = {field.name: getattr(node, field.name) for field in fields(node)}
        nodes.append({"type": type(node).__name__, **encode(values | held)})
    about = {f.name: encode(getattr(network, f.name)) for f in fields(network) if f.name != "nodes"}
    text = json.dumps(about | {"nodes": nodes}, sort_keys=True)
    return arrays | {GRAPH: np.frombuffer(text.encode(), np.uint8)}


def from_arrays(arrays: Arrays) -> FloatGraph:
    """Return the network that ``to_arrays`` was given."""
    content = json.loads(arrays[GRAPH].tobytes())
    nodes = [decode(node, CLASSES) for node in content.pop("nodes")]
    for index, node in enumerate(nodes):
        held: dict[str, Any] = {
            field.name: arrays[f"{index}.{field.name}"]
            for field in fields(node)
            if f"{index}.{field.name}" in arrays
        }
        nodes[index] = replace(node, **held)
    return FloatGraph(nodes=tuple(nodes), **decode(content, CLASSES))
