"""nn.LSTM and nn.GRU."""

from __future__ import annotations

from functools import partial

import torch

from pipeline.importers.layout import Value
from pipeline.importers.recurrent import both_ways, gates_of
from pipeline.importers.torch_call import Call, Table, floats

ORDERS = {"lstm": (0, 1, 2, 3), "gru": (1, 0, 2)}
"""Which of PyTorch's gates each of ours is."""


def cells(call: Call, kind: str) -> list[Value]:
    """aten.gru.input(x, h, parameters, has_biases, layers, dropout, train, bidirectional,
    batch_first), aten.lstm.input(x, [h, c], …): results but an LSTM's last c."""
    build, lstm = call.builder, kind == "lstm"
    begins, parameters = call.args[1], [floats(each) for each in call.args[2]]
    biased, layers, _, _, both, first = call.args[3:9]
    ways, held = 1 + both, 2 + 2 * biased
    if len(parameters) != layers * ways * held:
        raise build.refuse("projections are not supported: leave proj_size out")
    for state in begins if lstm else [begins]:
        if not isinstance(state, torch.Tensor) or state.any():
            raise build.refuse(
                "it begins with states that are not 0: leave them out, and with step=true they "
                "stay from one call to the next"
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
        made, last = both_ways(build, made, gates, [[]] * ways)
        ends += [each[0] for each in last]
    build.label = label
    whole = made.reshape((1, *made.shape))
    rows = [each.reshape((1, each.index.size)) for each in ends]
    last_h = rows[0] if len(rows) == 1 else build.concatenation(rows, 1)
    return [
        whole if first else whole.transpose((1, 0, 2)),
        last_h.reshape((len(rows), 1, ends[0].index.size)),
    ]


OPERATORS: Table = {f"aten.{kind}.input": partial(cells, kind=kind) for kind in ORDERS}
