"""Rules of ``lower`` for operators that weigh or compare many elements for each that they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod, sqrt
from typing import TYPE_CHECKING, Any

from pipeline.graph.operators.along import MatMul, Normalize
from pipeline.graph.operators.resize import Resize
from pipeline.graph.requant import FixedPoint
from pipeline.importers import float_whole as nodes
from pipeline.importers.float_graph import Node
from pipeline.importers.resampling import banded
from pipeline.importers.scales import fixed_point

if TYPE_CHECKING:
    from pipeline.importers.lower import Lowering


def _resized(low: Lowering, node: nodes.Resized) -> None:
    (top, down), (left, along) = banded(node.rows), banded(node.columns)
    given = {"firsts": (top, left), "weights": (down, along)}
    low.emit(Resize, node, inputs=low.kept(node), **given)


def _matrices(low: Lowering, node: nodes.MatrixProduct) -> None:
    operands = tuple(node.inputs[n] for n in node.operands)
    first, second = (low.affines[name] for name in operands)
    ratio, (inner, _) = first.scale * second.scale / low.affines[node.output].scale, node.turned
    count = low.tensors[operands[0]].shape[1 if inner else 2]
    requant = fixed_point(node, [ratio], first.reach * second.reach * count)
    given = {"operands": operands, "turned": node.turned, "requant": requant}
    low.emit(MatMul, node, clip=low.clip(node), **given)


def _normalized(low: Lowering, node: nodes.Normalized) -> None:
    """Integers are multiples of the input's scale, so that only epsilon depends on it."""
    source, target = low.affines[node.inputs[0]], low.affines[node.output]
    n = prod(low.tensors[node.inputs[0]].shape[axis] for axis in node.axes)
    epsilon = round(node.epsilon * (n if node.total else n * n) / source.scale**2)
    requant = FixedPoint.of([1 / (target.scale * (sqrt(n) if node.total else 1))])
    given = {"axes": node.axes, "centred": node.centred, "epsilon": min(epsilon, (1 << 62) - 1)}
    low.emit(Normalize, node, requant=requant, **given)


RULES: Mapping[type[Node], Callable[[Lowering, Any], None]] = {
    nodes.MatrixProduct: _matrices,
    nodes.Normalized: _normalized,
    nodes.Resized: _resized,
}
