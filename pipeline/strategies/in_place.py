"""Which inputs an operator's output may overwrite as it is computed."""

from __future__ import annotations

from pipeline.graph.access import Operand, Window
from pipeline.graph.operator import Operator, Tensors
from pipeline.graph.operators.add import Add
from pipeline.graph.operators.lookup import Lookup
from pipeline.graph.operators.multiply import Multiply
from pipeline.graph.operators.reshape import Reshape

ELEMENTWISE = (Add, Multiply, Lookup)


def overwritable(op: Operator, tensors: Tensors) -> tuple[str, ...]:
    """Inputs whose place the output of ``op`` can take, if nothing else needs them.

    Each output element lies where the one input element lay that no other output reads: an
    element-wise operator's full operand, whatever is broadcast to it. A reshape takes its whole
    input at once and leaves it where it is.
    """
    target = tensors[op.output]
    fitting = tuple(
        name
        for name in dict.fromkeys(op.inputs)
        if (tensors[name].size, tensors[name].dtype.bits) == (target.size, target.dtype.bits)
    )
    if isinstance(op, Reshape):
        return fitting
    if not isinstance(op, ELEMENTWISE):
        return ()
    operands = [operand for term in op.terms(tensors) for operand in term.operands]
    return tuple(
        name
        for name in fitting
        if all(_same_place(o, target.shape) for o in operands if o.tensor == name)
    )


def _same_place(operand: Operand, shape: tuple[int, ...]) -> bool:
    """Output element (i, j, …) reads element (i, j, …) and no other."""
    return len(operand.windows) == len(shape) and all(
        window == Window(axis) or (extent == 1 and window == Window(None))
        for axis, (window, extent) in enumerate(zip(operand.windows, shape, strict=True))
    )
