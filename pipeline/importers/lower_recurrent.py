"""Rules of ``lower`` for LSTM and GRU: weights of 8 bits with a scale for each gate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.graph.operators import recurrent
from pipeline.graph.requant import FixedPoint
from pipeline.importers import float_recurrent as nodes
from pipeline.importers.float_graph import Affine, Node
from pipeline.importers.float_nodes import Floats
from pipeline.importers.scales import (
    CELL,
    INT8,
    INT32,
    SHARE,
    lstm_memory,
    lstm_shown,
    weight_steps,
)

if TYPE_CHECKING:
    from pipeline.importers.lower import Lowering

SUMS = 2.0**-12
"""Steps of a gate's sums."""


def _gates(low: Lowering, node: nodes.Cells, hidden: Affine) -> dict[str, Any]:
    """Return parameters and factors of cells that read ``hidden`` of the step before."""
    count = len(node.gates)
    more = np.zeros((count, node.back.shape[1]))
    if isinstance(node, nodes.Gru):
        more[-1] = node.more
    sides = (
        (low.affines[node.inputs[0]].scale, node.weights, node.bias.reshape(count, -1)),
        (hidden.scale, node.back, more),
    )
    names, factors, offsets = list[str](), list[FixedPoint](), list[Floats]()
    for kind, (scale, weights, bias) in zip(("weights", "back"), sides, strict=True):
        rows = weights.reshape(count, -1)
        steps = weight_steps(rows, abs(bias).max(1), scale)
        stored = np.rint(rows / steps[:, None]).astype(np.int64).reshape(weights.shape)
        names.append(low.constant(f"{node.name}.{kind}", stored, INT8, steps[:1]))
        factors.append(FixedPoint.of((scale * steps / SUMS).tolist()))
        offsets.append(np.rint(bias / (scale * steps[:, None])))
    biases = {"bias": offsets[0].reshape(-1)}
    if isinstance(node, nodes.Gru):
        biases["more"] = offsets[1][-1]
    for kind, values in biases.items():
        held = values.astype(np.int64)
        names.append(low.constant(f"{node.name}.{kind}", held, INT32, np.ones(1)))
    return {"parameters": tuple(names), "requants": tuple(factors), "reverse": node.reverse}


def _cells(low: Lowering, node: nodes.Cells) -> None:
    """States are brought to their quantization, but an LSTM's h."""
    target, kind, gru = low.affines[node.output], KINDS[type(node)], isinstance(node, nodes.Gru)
    affines: list[Affine | None] = [SHARE] if gru else [None, CELL]
    inputs = [node.inputs[0]]
    for name, affine in zip(node.inputs[1:], affines, strict=False):  # of a sequence there are none
        if affine and affine != low.affines[name]:
            name = low.brought(name, affine, f"{name}.kept")
        inputs.append(name)
    hidden = SHARE if gru else low.affines[(*inputs, node.output)[1]]
    given = {"inputs": tuple(inputs), **_gates(low, node, hidden)}
    if isinstance(node, nodes.Gru):
        given["after"] = node.after
    if issubclass(kind, recurrent.LstmMemory):
        given |= lstm_memory(CELL.scale)
    if issubclass(kind, recurrent.LstmHidden):
        given |= lstm_shown(CELL.scale, target.scale)
    low.emit(kind, node, **given)


KINDS: Mapping[type[Node], type[recurrent.Recurrent]] = {
    nodes.Lstm: recurrent.Lstm,
    nodes.LstmMemory: recurrent.LstmMemory,
    nodes.LstmHidden: recurrent.LstmHidden,
    nodes.Gru: recurrent.Gru,
    nodes.GruStep: recurrent.Gru,
}
RULES: Mapping[type[Node], Callable[[Lowering, Any], None]] = dict.fromkeys(KINDS, _cells)
