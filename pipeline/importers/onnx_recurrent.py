"""LSTM and GRU of ONNX."""

from __future__ import annotations

from functools import partial

import numpy as np

from pipeline.importers.layout import Value
from pipeline.importers.onnx_call import Call, Constant, Item, Table
from pipeline.importers.recurrent import both_ways, gates_of

ORDERS = {"LSTM": (0, 2, 3, 1), "GRU": (0, 1, 2)}
"""Which of the file's gates each of ours is."""
ACTIVATIONS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh")}
BEYOND = "sequences of other lengths, peepholes, clips, other activations and coupled gates"


def cells(call: Call, kind: str) -> list[Item]:
    """Return a sequence (steps, 1, features); of one step with initial states, too."""
    build, node = call.builder, call.node
    way, after = call.text("direction", "forward"), bool(call.integer("linear_before_reset", 0))
    count = 2 if way == "bidirectional" else 1
    named = node.attributes.get("activations") or ()
    functions = tuple(n.decode() if isinstance(n, bytes) else n for n in named)
    first = bool(call.integer("layout", 0))
    if len(call.x.shape) != 3:
        raise call.refuse(f"a sequence has three axes, not {list(call.x.shape)}")
    x = call.x.transpose((1, 0, 2)) if first else call.x
    if (
        functions not in ((), ACTIVATIONS[kind] * count)
        or {"clip", "activation_alpha", "activation_beta"} & {*node.attributes}
        or call.integer("input_forget", 0) or call.item(4) or call.item(7)
    ):  # fmt: skip
        raise call.refuse(f"{BEYOND} are not supported")
    if x.shape[1] != 1:
        raise call.refuse(f"a batch of {x.shape[1]} sequences: one is supported")
    given = [call.constant(n).floats for n in (1, 2)]
    rows, units = given[1].shape[1:] if given[1].ndim == 3 else (0, 0)
    wanted = [(count, rows, x.shape[2]), (count, rows, units), (count, 2 * rows)]
    if biases := call.optional(3):
        given.append(biases.floats)
    shapes = [each.shape for each in given]
    if shapes != wanted[: len(given)] or rows != units * len(ORDERS[kind]):
        raise call.refuse(f"weights of {[list(each) for each in shapes]}: not those of cells")
    given[2:] = np.split(given[2], 2, axis=1) if biases else []
    gates = [
        gates_of([each[n] for each in given], ORDERS[kind], after or kind == "LSTM")
        for n in range(count)
    ]
    kept = [each for n in (5, 6)[: len(ORDERS[kind]) - 2] if (each := call.item(n))]
    if any(isinstance(each, Constant) and each.values.any() for each in kept):
        raise call.refuse("it begins with constants that are not 0")
    states = [each for each in kept if isinstance(each, Value)]
    if len(states) not in (0, len(ORDERS[kind]) - 2) or (states and count == 2):
        raise call.refuse("both h and c are given in one direction, or neither is")
    steps = x.shape[0]
    if any(each.index.size != units for each in states):
        raise call.refuse(f"its states are not of {units} units")
    flat = x.reshape((steps, x.shape[2]))
    made, ends = both_ways(build, flat, gates, [states] * count, way == "reverse")
    whole = made.reshape((steps, count, 1, units))
    found: list[Item] = [whole.transpose((2, 0, 1, 3)) if first else whole]
    shape = (1, count, units) if first else (count, 1, units)
    for end in zip(*ends, strict=True):
        both = (
            end[0] if count == 1 else build.concatenation([e.reshape((1, units)) for e in end], 1)
        )
        found.append(both.reshape(shape))
    return found


OPERATORS: Table = {kind: partial(cells, kind=kind) for kind in ORDERS}
