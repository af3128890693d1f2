"""UNIDIRECTIONAL_SEQUENCE_LSTM and SVDF, which keep variables of their own.

Source of the arithmetic: tflite-micro's lstm_eval_common.cc and svdf_common.cc.
"""

from __future__ import annotations

from math import log2
from typing import Any

import numpy as np
from tflite.ActivationFunctionType import ActivationFunctionType

from pipeline.errors import ThimbleError
from pipeline.graph.operators.conv2d import Dense
from pipeline.graph.operators.recurrent import Lstm, LstmHidden, LstmMemory, TimeFilter
from pipeline.graph.requant import FixedPoint
from pipeline.importers.moves import Move, Run
from pipeline.importers.scales import lstm_memory, lstm_shown
from pipeline.importers.tflite_builder import Builder, values_of
from pipeline.importers.tflite_model import FileTensor, Node
from pipeline.importers.tflite_operator import Entry, Options
from pipeline.importers.tflite_products import wide

ACTIVATIONS = "INT8", "INT16"
BEYOND = {
    "a peephole": (9, 10, 11),
    "a projection": (16, 17),
    "layer normalization": (20, 21, 22, 23),
}
"""Inputs of what is refused."""


def lstm(build: Builder, node: Node, options: Options) -> None:
    """int8 or int16, of sequences: each call begins with h and c of 0; with step=true, of one step,
    they stay from one call to the next. No peepholes, projections, layer normalization or coupled
    gates."""
    for what, places in BEYOND.items():
        if any(node.optional(place) for place in places):
            raise ThimbleError(f"it has {what}: only plain LSTMs are supported")
    if node.optional(1) is None or options["activation"] != ActivationFunctionType.TANH:
        raise ThimbleError("its input gate is coupled, or its cell's activation is not tanh")
    given, hidden, cell = node.input(0), node.input(18), node.input(19)
    if len(given.dims) != 3 or not hidden.dims:
        raise ThimbleError(f"sequences of {list(given.dims)}, a state of {list(hidden.dims)}")
    batch, steps = given.dims[:2][:: -1 if options["time_major"] else 1]
    if batch != 1:
        raise ThimbleError(f"a batch of {batch} sequences: one is supported")
    x = build.shaped(build.source(given, ACTIVATIONS).name, (1, steps, given.dims[2]))
    if (hidden.scales, hidden.zero_points) != (node.output.scales, node.output.zero_points):
        raise ThimbleError("its state and its output differ in scale or zero point")
    if {hidden.type, node.output.type} != {given.type}:
        raise ThimbleError(f"its state is {hidden.type}, its output {node.output.type}, its input "
                           f"{given.type}: one type is needed")  # fmt: skip
    power = round(log2(cell.scale))
    if abs(log2(cell.scale) - power) > 1e-3 or cell.type != "INT16":
        raise ThimbleError("its cell state is not int16 in steps of a power of two")
    memory, shown = lstm_memory(cell.scale), lstm_shown(cell.scale, node.output.scale)
    if (clip := options["cell_clip"]) > 0:
        memory["most"] = max(1, min(int(clip / cell.scale), 32767))
    units = hidden.dims[-1]
    if not build.step:
        target = build.target(node.output, ACTIVATIONS, (1, steps, units))
        held = _gates(build, node, range(4))
        build.emit(Lstm, [x], target.name, **held, **memory, **shown)
        return build.finish(node.output, target)
    if steps != 1:
        raise ThimbleError(f"step=true is for sequences of one step, this one has {steps}")
    h, c = (_state(build, each, (1, 1, units)) for each in (hidden, cell))
    made = build.like(f"{cell.name}_next", build.tensors[c], (1, 1, units))
    build.emit(LstmMemory, [x, h, c], made, **_gates(build, node, range(3)), **memory)
    target = build.target(node.output, ACTIVATIONS, (1, 1, units))
    build.label += "_hidden"
    build.emit(LstmHidden, [x, h, made], target.name, **_gates(build, node, range(3, 4)), **shown)
    build.assigned |= {hidden.name: target.name, cell.name: made}
    build.finish(node.output, target)


def _gates(build: Builder, node: Node, gates: range) -> dict[str, Any]:
    """Return weights and factors of some of the gates."""
    given, found, factors = (node.input(0), node.input(18)), list[str](), list[FixedPoint]()
    biases, units = [node.input(12 + gate) for gate in gates], given[1].dims[-1]
    for first, source in zip((1, 5), given, strict=True):
        parts = [node.input(first + gate) for gate in gates]
        if any(part.zero_point for part in parts):
            raise ThimbleError("its weights have zero points")
        dims = [part.dims for part in (*parts, *biases)]
        if set(dims) != {(units, source.dims[-1]), (units,)}:
            raise ThimbleError(f"weights and biases of {dims} do not fit {units} units")
        name, values = f"{node.name}_{first}", [values_of(part, ("INT8",)) for part in parts]
        steps = tuple(part.scale for part in parts)
        found.append(build.constant(name, np.concatenate(values), "int8", steps[:1]).name)
        factor = FixedPoint.of if source.type == "INT8" else wide
        factors.append(factor([source.scale * step * 4096 for step in steps]))
    values = [values_of(bias, ("INT32", "INT64")) for bias in biases]
    found.append(build.constant(f"{node.name}_bias", np.concatenate(values), "int32", (1.0,)).name)
    return {"parameters": tuple(found), "requants": tuple(factors)}


def svdf(build: Builder, node: Node, options: Options) -> None:
    """int8, of one step; its state, of 8 or 16 bits, stays from one call to the next."""
    given, features, times, state = (node.input(n) for n in (0, 1, 2, 4))
    if len(features.dims) != 2 or len(times.dims) != 2:
        raise ThimbleError(f"features of {list(features.dims)}, times of {list(times.dims)}")
    (filters, depth), (_, memory), out = features.dims, times.dims, node.output
    rank = options["rank"]
    if rank < 1 or filters % rank or state.size != filters * memory:
        raise ThimbleError(f"a rank of {rank}, a state of {state.size} for {filters} filters")
    x = build.shaped(build.source(given).name, (depth,))
    weights, biases = values_of(features, ("INT8",)), np.zeros(filters, np.int32)
    held = build.constant(
        f"{node.name}_features", weights, "int8", features.scales, features.zero_point
    )
    bias = build.constant(f"{node.name}_none", biases, "int32", (1.0,))
    kept, zero = (state.scale,), state.zero_point
    new = build.fresh(f"{node.name}_new", (filters,), state.type.lower(), kept, zero)
    build.emit(
        Dense, [x], new.name, parameters=(held.name, bias.name),
        requant=FixedPoint.of([given.scale * features.scale / state.scale]),
    )  # fmt: skip
    label, every = build.label, build.shaped(new.name, (1, 1, filters))
    if memory > 1:
        old = _state(build, state, (memory - 1, 1, filters))
        every = build.joined([old, every], 0)
        runs = Run(1, 1, memory - 1), Run(0, 1, 1), Run(0, 1, filters)
        left = build.rearranged(every, Move.along((memory, 1, filters), runs))
        build.assigned[state.name] = left
    build.label = f"{label}_time"
    weights = values_of(times, ("INT8", "INT16"))
    name = f"{node.name}_times"
    last = build.constant(name, weights, times.type.lower(), times.scales, times.zero_point)
    given_bias, units = node.optional(3), filters // rank
    values = values_of(given_bias, ("INT32",)) if given_bias else np.zeros(units, np.int32)
    bias = build.constant(f"{node.name}_bias", values.reshape(-1), "int32", (1.0,))
    target = build.target(out, shape=(units,))
    requant = FixedPoint.of([state.scale * times.scale / out.scale])
    parameters = (last.name, bias.name)
    build.emit(TimeFilter, [every], target.name, parameters=parameters, requant=requant)
    build.finish(out, target)


def _state(build: Builder, tensor: FileTensor, shape: tuple[int, ...]) -> str:
    """Hold what the call before made of a variable."""
    if not tensor.variable:
        raise ThimbleError(f"{tensor.name} is no variable")
    build.reads[tensor.name] = tensor
    return build.target(tensor, ACTIVATIONS, shape).name


OPERATORS = {
    "UNIDIRECTIONAL_SEQUENCE_LSTM": Entry(
        lstm,
        "UnidirectionalSequenceLSTMOptions",
        "activation:i8 cell_clip:f32 proj_clip:f32 time_major:bool",
    ),
    "SVDF": Entry(svdf, "SVDFOptions", "rank:i32 activation:i8"),
}
