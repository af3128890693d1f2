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
from pipeline.importers.scales import CELL, INT8, INT32, SHARE, weight_steps

if TYPE_CHECKING:
    from pipeline.importers.lower import Lowering

SUMS = 2.0**-12
"""Steps of a gate's sums."""


def _gates(low: Lowering, node: nodes.Cells, hidden: Affine) -> dict[str, Any]:
    """Return parameters and factors of cells that read ``hidden`` of the step before."""
    count = node.gates
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


def _memory() -> dict[str, Any]:
    scales = 2.0**-15, 2.0**-30 / CELL.scale
    return dict(zip(("keep", "add"), (FixedPoint.of([each]) for each in scales), strict=True))


def _shown(target: Affine) -> dict[str, Any]:
    """``curve``: steps of c are twice those that tanh takes."""
    return {"show": FixedPoint.of([2.0**-30 / target.scale]), "curve": (6, 0)}


def _states(low: Lowering, node: Node, *affines: Affine | None) -> tuple[str, ...]:
    """The inputs, states brought to their quantization."""
    states = zip(node.inputs[1:], affines, strict=True)
    found = [
        name if affine in (None, low.affines[name]) else low.brought(name, affine, f"{name}.kept")
        for name, affine in states
    ]
    return node.inputs[0], *found


def _lstm(low: Lowering, node: nodes.Lstm) -> None:
    target = low.affines[node.output]
    given = _gates(low, node, target) | _memory() | _shown(target)
    low.emit(recurrent.Lstm, node, **given)


def _remembered(low: Lowering, node: nodes.LstmMemory) -> None:
    inputs = _states(low, node, None, CELL)
    given = _gates(low, node, low.affines[inputs[1]]) | _memory()
    low.emit(recurrent.LstmMemory, node, inputs=inputs, **given)


def _hidden(low: Lowering, node: nodes.LstmHidden) -> None:
    inputs, target = _states(low, node, None, CELL), low.affines[node.output]
    given = _gates(low, node, low.affines[inputs[1]]) | _shown(target)
    low.emit(recurrent.LstmHidden, node, inputs=inputs, **given)


def _gru(low: Lowering, node: nodes.Gru) -> None:
    inputs = _states(low, node, SHARE) if len(node.inputs) > 1 else node.inputs
    low.emit(recurrent.Gru, node, inputs=inputs, after=node.after, **_gates(low, node, SHARE))


RULES: Mapping[type[Node], Callable[[Lowering, Any], None]] = {
    nodes.Lstm: _lstm,
    nodes.LstmMemory: _remembered,
    nodes.LstmHidden: _hidden,
    nodes.Gru: _gru,
    nodes.GruStep: _gru,
}
