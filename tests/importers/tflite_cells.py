"""Files with cells that keep variables of their own."""

import numpy as np
from tflite.ActivationFunctionType import ActivationFunctionType

from tests.importers.tflite_writer import Random, Writer, scale, zero

MISSING = -1


def lstm(rng: Random, steps: int = 0, kind: str = "INT8", **beyond: int) -> bytes:
    """A sequence; ``beyond``: a part that is refused, by the place of its input."""
    bias = np.int32 if kind == "INT8" else np.int64
    steps = steps or int(rng.integers(1, 7))
    features, units = (int(n) for n in rng.integers(1, 9, 2))
    net, time_major = Writer(), bool(rng.integers(2))
    both = [(1, steps), (steps, 1)][time_major]
    finer, off = (1.0, 1) if kind == "INT8" else (2.0**-8, 0)
    x = net.tensor((*both, features), finer * scale(rng, 0.01, 0.05), off * zero(rng), kind)
    s, z = finer * float(rng.uniform(0.006, 0.01)), off * int(rng.integers(-20, 20))
    power = -int(rng.integers(9, 15))
    inputs = [x] + [MISSING] * 23
    for gate in range(4):
        for first, depth in ((1, features), (5, units)):
            values = rng.integers(-127, 128, (units, depth)).astype(np.int8)
            inputs[first + gate] = net.constant(values, scale(rng, 0.003, 0.03))
        inputs[12 + gate] = net.constant(rng.integers(-9000, 9000, units).astype(bias), 1e-4)
    inputs[18] = net.tensor((1, units), s, z, kind, variable=True)
    inputs[19] = net.tensor((1, units), 2.0**power, 0, "INT16", variable=True)
    for place in beyond.values():
        inputs[place] = net.constant(np.ones((units, units), np.int8), 0.1)
    y = net.tensor((*both, units), s, z, kind)
    options = {"TimeMajor": time_major, "CellClip": float(rng.choice([0, 0, 0.5, 10]))}
    net.operator(
        "UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [y], "UnidirectionalSequenceLSTMOptions",
        FusedActivationFunction=ActivationFunctionType.TANH, **options,
    )  # fmt: skip
    return net.content([x], [y])


def svdf(rng: Random) -> bytes:
    depth, units, rank, memory = (int(n) for n in rng.integers(1, 6, 4))
    net, filters = Writer(), units * rank
    kept = str(rng.choice(["INT8", "INT16"]))
    x, wide = net.tensor((1, depth), scale(rng), zero(rng)), kept == "INT16"
    most = 3000 if wide else 127
    times = rng.integers(-most, most, (filters, memory)).astype(kept.lower())
    inputs = [
        x,
        net.constant(rng.integers(-127, 128, (filters, depth)).astype(np.int8), scale(rng)),
        net.constant(times, scale(rng, 1e-5, 1e-4)),
        net.constant(rng.integers(-9000, 9000, units).astype(np.int32), 1e-6),
    ]
    s = scale(rng, 0.05, 0.1) / (256 if wide else 1)
    inputs.append(net.tensor((1, filters * memory), s, 0, kept, variable=True))
    y = net.tensor((1, units), scale(rng), int(rng.integers(-128, 100)))
    net.operator(
        "SVDF", inputs, [y], "SVDFOptions", Rank=rank,
        FusedActivationFunction=ActivationFunctionType.RELU,
    )  # fmt: skip
    return net.content([x], [y])
