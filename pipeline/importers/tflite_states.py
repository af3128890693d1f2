"""Variables of a .tflite file, which live from one call to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.state import State
from pipeline.graph.tensor import IntArray
from pipeline.importers.tflite_builder import ANY, Builder, values_of
from pipeline.importers.tflite_operator import Entry, Options

if TYPE_CHECKING:
    from pipeline.importers.tflite_model import FileModel, Node

HANDLE, READ, ASSIGN, ONCE = "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE"


def handle(build: Builder, node: Node, options: Options) -> None:
    """Name a variable that lives from one call to the next."""
    build.handles[node.output.index] = name_of(node)


def read(build: Builder, node: Node, options: Options) -> None:
    """Once, before the variable is assigned; int8, uint8 or int16."""
    name = build.handles[node.input(0).index]
    if name in build.reads or name in build.assigned:
        raise ThimbleError(f"the variable {name} is read twice, or after it is assigned")
    build.reads[name] = node.output
    build.target(node.output, ANY)


def assign(build: Builder, node: Node, options: Options) -> None:
    """Once, a tensor of the shape, type and quantization that are read."""
    name, given = build.handles[node.input(0).index], node.input(1)
    if name in build.assigned:
        raise ThimbleError(f"the variable {name} is assigned twice")
    if name not in build.reads:
        raise ThimbleError(f"the variable {name} is assigned, and not read before")
    kept = build.reads[name]
    if (kept.dims, kept.type, kept.scales, kept.zero_points) != (
        *(given.dims, given.type, given.scales, given.zero_points),
    ):
        raise ThimbleError(
            f"the variable {name} is read as {list(kept.dims)} and assigned {list(given.dims)}: "
            "shape, type and quantization have to agree"
        )
    build.assigned[name] = build.source(given, ANY).name


def once(build: Builder, node: Node, options: Options) -> None:
    """Call a subgraph that assigns constants: variables' initial values, else the zero point."""


def name_of(node: Node) -> str:
    return (node.options.text(1) if node.options else "") or f"number {node.index}"


def initial_values(model: FileModel) -> dict[str, IntArray]:
    """Return what subgraphs that are called once assign, by the variable's name."""
    found: dict[str, IntArray] = {}
    for index in range(model.operators):
        if model.operator(index)[0] != ONCE:
            continue
        options = model.node(index).options
        part, names = model.part(options.scalar(0, "i32") if options else 0), dict[int, str]()
        for each in map(part.node, range(part.operators)):
            if each.kind == HANDLE:
                names[each.output.index] = name_of(each)
            elif each.kind == ASSIGN and (resource := each.input(0).index) in names:
                values = values_of(each.input(1), (*ANY, "INT8"))
                found[names[resource]] = values.astype(np.int64)
            else:
                raise ThimbleError(f"{each.kind} in a subgraph that is called once is unsupported")
    return found


def paired(
    build: Builder, initial: dict[str, IntArray]
) -> tuple[tuple[State, ...], dict[str, IntArray]]:
    """Return the graph's states, and their ``initial`` values.

    Raises:
        ThimbleError: a variable that is read and not assigned, or begins with another shape.
    """
    states, values = list[State](), dict[str, IntArray]()
    for name, tensor in build.reads.items():
        if name not in build.assigned:
            raise ThimbleError(f"the variable {name} is read, and never assigned")
        held = build.tensors[build.made[tensor.index]]
        begins = initial.get(name, np.full(held.shape, held.zero_point))
        if begins.size != held.size:
            raise ThimbleError(
                f"the variable {name} begins with {begins.size} values, not {held.size}"
            )
        values[held.name] = begins.reshape(held.shape)
        made = build.assigned[name]
        if made in {each.made for each in states} or all(
            op.output != made for op in build.operators
        ):
            made = build.reshaped(build.tensors[made], held.shape).name
        states.append(State(held.name, made))
    return tuple(states), values


OPERATORS = {
    HANDLE: Entry(handle),
    READ: Entry(read),
    ASSIGN: Entry(assign),
    ONCE: Entry(once),
}
