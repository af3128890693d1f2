"""Layers of LSTM and GRU, as both PyTorch and ONNX have them, in terms of ``Builder``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pipeline.graph.state import State
from pipeline.importers import float_nodes, float_recurrent
from pipeline.importers.builder import Builder
from pipeline.importers.float_nodes import Floats
from pipeline.importers.functions import Composed
from pipeline.importers.layout import Value
from pipeline.importers.moves import Move, Run

Gates = Mapping[str, Any]
"""Fields of a node: of an LSTM the gates i, f, g and o, of a GRU z, r and n."""


def gates_of(arrays: Sequence[Floats], order: Sequence[int], after: bool = True) -> Gates:
    """Return gates of weights (gates * units, features), those of h, and of any biases of both.

    ``order``: which of the source's gates each is; ``after``: of a GRU, r is applied to the product
    with h.
    """
    weights, back, *biases = (
        np.concatenate([np.split(each, len(order))[gate] for gate in order]) for each in arrays
    )
    bias, later = biases or [np.zeros(len(weights))] * 2
    given = {"weights": weights, "back": back}
    if len(order) == 4:
        return {**given, "bias": bias + later}
    *early, more = np.split(later, 3)
    early.append(np.zeros(len(more)))
    return {**given, "bias": bias + np.concatenate(early), "more": more, "after": after}


def layer(
    build: Builder, x: Value, gates: Gates, states: Sequence[Value], reverse: bool = False
) -> tuple[Value, list[Value]]:
    """(steps, features) -> (steps, units), and h (and c of one step) at the end, (units,) each.

    ``states``: what it begins with, where that isn't 0.
    """
    (steps, features), units, lstm = x.shape, gates["back"].shape[1], "more" not in gates
    order = np.arange(steps * features).reshape(x.shape)
    tensor, kept = build.ordered(x, order, (1, steps, features)), list[str]()
    if steps > 1 and (states or build.step):
        raise build.refuse(
            f"a sequence of {steps} steps that begins with states, or with step=true: export the "
            "network with a sequence of one step"
        )
    line = np.arange(units)
    if states:
        kept = [build.ordered(each, line.reshape(each.shape), (1, 1, units)) for each in states]
    elif build.step:
        for kind in "hc"[: 1 + lstm]:
            kept.append(f"{build.label}.{kind}")
            build.shapes[kept[-1]] = (1, 1, units)
    if not kept:
        whole = float_recurrent.Lstm if lstm else float_recurrent.Gru
        made = build.add(whole, [tensor], reverse=reverse, **gates)
        runs = Run(0, 1, 1), Run(0 if reverse else steps - 1, 1, 1), Run(0, 1, units)
        last = made
        if steps > 1:
            last = build.rearranged(made, Move.along((1, steps, units), runs))
        return Value(made, np.arange(steps * units).reshape(steps, units)), [Value(last, line)]
    if lstm:
        first = {name: each[: 3 * units] for name, each in gates.items()}
        rest = {name: each[3 * units :] for name, each in gates.items()}
        memory = build.add(float_recurrent.LstmMemory, [tensor, *kept], "c", **first)
        hidden = build.add(float_recurrent.LstmHidden, [tensor, kept[0], memory], **rest)
        found, shown = [hidden, memory], hidden
    else:
        found = [build.add(float_recurrent.GruStep, [tensor, *kept], **gates)]
        shown = build.add(
            float_nodes.Function, found, "shown", body=Composed.of("identity")
        )  # of 8 bits
    if not states:
        build.states += [State(*pair) for pair in zip(kept, found, strict=True)]
    return Value(shown, line.reshape(1, units)), [Value(each, line) for each in found]


def both_ways(
    build: Builder, x: Value, gates: Sequence[Gates], states: Sequence[Sequence[Value]],
    reverse: bool = False,
) -> tuple[Value, list[list[Value]]]:  # fmt: skip
    """(steps, features) -> (steps, directions * units), and states at the end by direction.

    ``reverse``: of one direction, it is the backward one.
    """
    made, ends = list[Value](), list[list[Value]]()
    label = build.label
    for number, (each, kept) in enumerate(zip(gates, states, strict=True)):
        backwards = reverse or number == 1
        build.label = f"{label}.reverse" if backwards else label
        if backwards and (kept or build.step):
            raise build.refuse("backwards, step by step: only whole sequences go both ways")
        found, last = layer(build, x, each, kept, backwards)
        made.append(found)
        ends.append(last)
    build.label = label
    if len(made) == 1:
        return made[0], ends
    steps, units = made[0].shape
    joined = build.joined([each.tensor for each in made], 2)
    return Value(joined, np.arange(2 * steps * units).reshape(steps, 2 * units)), ends
