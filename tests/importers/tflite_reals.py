"""Random networks that compute a function of one value between DEQUANTIZE and QUANTIZE."""

import numpy as np

from tests.importers.tflite_writer import Random, Writer, scale, zero

REAL = ("EXP", "LOG", "SQRT", "SQUARE", "NEG", "SIN", "COS", "FLOOR", "CEIL", "ROUND")
NUMBERS = ("DIV", "FLOOR_DIV", "FLOOR_MOD")
COMPARED = ("LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL", "EQUAL", "NOT_EQUAL")


def real(kind: str, rng: Random) -> bytes:
    """A function of one float between DEQUANTIZE and QUANTIZE; comparisons choose by SELECT_V2."""
    if kind in COMPARED and rng.random() < 0.5:
        return extreme(kind, rng)
    net, dims = Writer(), (1, 300)
    x = net.tensor(dims, scale(rng, 0.01, 0.03), zero(rng))
    a, b, c = (net.tensor(dims, dtype="FLOAT32") for _ in range(3))
    net.operator("DEQUANTIZE", [x], [a])
    if kind in ("LOG", "SQRT"):  # of what is above 0
        whole, a = a, net.tensor(dims, dtype="FLOAT32")
        net.operator("EXP", [whole], [a])
    number = net.constant(np.array(rng.uniform(0.3, 2), np.float32))
    if kind in COMPARED:
        holds = net.tensor(dims, dtype="BOOL")
        net.operator(kind, [a, number], [holds])
        net.operator("SELECT_V2", [holds, a, number], [b])
    elif kind in NUMBERS:
        net.operator(kind, [a, number], [b], "DivOptions" if kind == "DIV" else "")
    else:
        net.operator(kind, [a], [b])
    options = {"FusedActivationFunction": int(rng.choice([0, 1, 3]))}
    net.operator("ADD", [b, a], [c], "AddOptions", **options)
    y = net.tensor(dims, scale(rng, 0.02, 0.05), zero(rng))
    net.operator("QUANTIZE", [c], [y])
    return net.content([x], [y])


def extreme(kind: str, rng: Random) -> bytes:
    net, s, z = Writer(), scale(rng), zero(rng)
    dims = (1, 300) if rng.random() < 0.5 else (1, 10, 5, 6)
    squared, compared = kind == "SQUARED_DIFFERENCE", kind in COMPARED
    other = (s * rng.uniform(0.5, 2), zero(rng)) if squared or compared else (s, z)
    x = net.tensor(dims, s, z)
    y = net.tensor(dims, s * s * rng.uniform(50, 300) if squared else s, z)
    shape = ((), (1,), (1,) * len(dims), dims[-1:], dims)[int(rng.integers(5))]
    held = net.constant(np.asarray(rng.integers(-128, 128, shape), np.int8), *other)
    if rng.random() < 0.3:
        held = net.tensor(dims, *other)
        net.operator("QUANTIZE", [x], [held])
    pair = [x, held] if rng.random() < 0.5 else [held, x]
    if compared:
        holds, least = net.tensor(dims, dtype="BOOL"), net.tensor(dims, s, z)
        net.operator("RELU", [x], [least])
        net.operator(kind, pair, [holds])
        net.operator("SELECT_V2", [holds, x, least], [y])
        return net.content([x], [y])
    net.operator(kind, pair, [y], "" if squared else "MaximumMinimumOptions")
    return net.content([x], [y])
