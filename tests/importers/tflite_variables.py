"""A file with a variable, which keeps rows from one call to the next."""

import numpy as np

from tests.importers.tflite_cases import convolved
from tests.importers.tflite_writer import Random, Writer, scale, zero


def variable(
    rng: Random, reads: bool = True, assigned: int = 1, rows: int = 0, begins: int = 0
) -> bytes:
    """Frames of one or two rows behind those that are kept, which a convolution sees together."""
    (kept, new), depth, net, once = rng.integers(1, 4, 2).tolist(), 4, Writer(), Writer()
    s, z = scale(rng), zero(rng)
    x = net.tensor((1, new, 1, depth), s, z)
    net.operator("CALL_ONCE", [], [], "CallOnceOptions", InitSubgraphIndex=1)
    resource = net.tensor((), dtype="RESOURCE")
    net.operator("VAR_HANDLE", [], [resource], "VarHandleOptions", SharedName="kept")
    old = net.tensor((1, kept, 1, depth), s, z)
    if reads:
        net.operator("READ_VARIABLE", [resource], [old], "ReadVariableOptions")
    both = net.tensor((1, kept + new, 1, depth), s, z)
    parts = [old if reads else x, x]
    net.operator("CONCATENATION", parts, [both], "ConcatenationOptions", Axis=1)
    left = net.tensor((1, kept + rows, 1, depth), s, z)
    at, size = (net.constant(np.array([0, n, 0, 0], np.int32)) for n in (new - rows, 0))
    net.tensors[size]["data"] = np.array([1, kept + rows, 1, depth], np.int32)
    net.operator("SLICE", [both, at, size], [left])
    for _ in range(assigned):
        net.operator("ASSIGN_VARIABLE", [resource, left], [], "AssignVariableOptions")
    y = convolved(net, rng, both, 5, kernel=(kept + new, 1), same=False)
    same = once.tensor((), dtype="RESOURCE")
    once.operator("VAR_HANDLE", [], [same], "VarHandleOptions", SharedName="kept")
    first = rng.integers(-128, 128, (1, kept + begins, 1, depth)).astype(np.int8)
    if rng.random() < 0.5:
        first[:] = z
    value = once.constant(first, s, z)
    once.operator("ASSIGN_VARIABLE", [same, value], [], "AssignVariableOptions")
    return net.content([x], [y], once)
