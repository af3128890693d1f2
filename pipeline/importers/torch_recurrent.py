"""nn.LSTM and nn.GRU, and their cells alone."""

from __future__ import annotations

from functools import partial

import torch

from pipeline.importers.layout import Value
from pipeline.importers.recurrent import both_ways, gates_of, layer
from pipeline.importers.torch_call import Call, Table, floats

ORDERS = {"lstm": (0, 1, 2, 3), "gru": (1, 0, 2)}
"""Which of PyTorch's gates each of ours is."""


def cells(call: Call, kind: str) -> list[Value]:
    """aten.gru.input(x, h, parameters, has_biases, layers, dropout, train, bidirectional,
    batch_first), aten.lstm.input(x, [h, c], …): results, an LSTM's last c
    where it is given one."""
    build, lstm = call.builder, kind == "lstm"
    begins, parameters = call.args[1], [floats(each) for each in call.args[2]]
    biased, layers, _, _, both, first = call.args[3:9]
    ways, held = 1 + both, 2 + 2 * biased
    if len(parameters) != layers * ways * held:
        raise build.refuse("projections are not supported: leave proj_size out")
    states = begins if lstm else [begins]
    given = [each for each in states if isinstance(each, Value)]
    beyond = given and (len(given) < len(states) or layers * ways > 1)
    if beyond or any(isinstance(each, torch.Tensor) and each.any() for each in states):
        raise build.refuse(
            "it begins with states that are not 0: give h, and c, to one layer in one direction "
            "(model.state), or leave them out: with step=true they stay from one call to the next"
        )
    x = call.x if first else call.x.transpose((1, 0, 2))
    if x.shape[0] != 1:
        raise build.refuse(f"a batch of {x.shape[0]} sequences: one is supported")
    made, ends, label = x.reshape(x.shape[1:]), list[Value](), build.label
    for number in range(layers):
        every = [parameters[n : n + held] for n in range(0, len(parameters), held)]
        some = every[number * ways : (number + 1) * ways]
        gates = [gates_of(each, ORDERS[kind]) for each in some]
        build.label = f"{label}.{number}" if layers > 1 else label
        made, last = both_ways(build, made, gates, [given] * ways)
        ends += [each[0] for each in last]
        kept = [each.reshape((1, 1, each.index.size)) for each in last[0][1:]]
    build.label = label
    whole = made.reshape((1, *made.shape))
    rows = [each.reshape((1, each.index.size)) for each in ends]
    last_h = rows[0] if len(rows) == 1 else build.concatenation(rows, 1)
    return [
        whole if first else whole.transpose((1, 0, 2)),
        last_h.reshape((len(rows), 1, ends[0].index.size)),
        *kept,
    ]


def cell(call: Call, kind: str) -> list[Value] | Value:
    """aten.gru_cell(x, h, weights, those of h, biases), aten.lstm_cell(x, [h, c], …)."""
    parameters = [floats(each) for each in call.args[2:] if each is not None]
    kept = [*call.args[1]] if kind == "lstm" else [call.args[1]]
    if not all(isinstance(each, Value) for each in kept):
        raise call.builder.refuse("a cell by itself reads what it made before (model.state)")
    _, ends = layer(call.builder, call.x, gates_of(parameters, ORDERS[kind]), kept)
    found = [each.reshape(kept[0].shape) for each in ends]
    return found if kind == "lstm" else found[0]


OPERATORS: Table = {
    **{f"aten.{kind}.input": partial(cells, kind=kind) for kind in ORDERS},
    **{f"aten.{kind}_cell.default": partial(cell, kind=kind) for kind in ORDERS},
}
