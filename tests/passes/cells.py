"""Random cells: of a sequence in a network, or one step."""

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from pipeline.graph.operators.recurrent import Gru, LstmHidden, LstmMemory, Recurrent, TimeFilter
from pipeline.graph.requant import FixedPoint
from pipeline.graph.tensor import DType, Tensor
from tests.graphs import Net


def cell(kind: type[Recurrent], rng: np.random.Generator, features: int, units: int) -> Any:
    """Return the fields of cells, and the parameters' values."""
    rows = units * kind.gates
    shapes = [(rows, features), (rows, units), (rows,), (units,)][: 3 + (kind is Gru)]
    values = [rng.integers(-127, 128, shape) * (9 if len(shape) == 1 else 1) for shape in shapes]
    scales = [rng.uniform(0.05, 0.3, kind.gates), rng.uniform(0.05, 0.3, kind.gates)]
    fields: dict[str, Any] = {"reverse": bool(rng.integers(2))}
    if kind is Gru:
        scales[1] *= 2.0**-8
        values[3] *= 1 << 8
        fields["after"] = bool(rng.integers(2))
    if issubclass(kind, LstmMemory):
        fields |= {"keep": FixedPoint.of([2.0**-15]), "add": FixedPoint.of([2.0**-18])}
        fields["most"] = int(rng.choice([0, 9000]))
    if issubclass(kind, LstmHidden):
        fields |= {"show": FixedPoint.of([2.0**-22.5]), "curve": (3, int(rng.integers(3)))}
    return fields | {"requants": tuple(map(FixedPoint.of, scales))}, values


def cells(kind: type[Recurrent], net: Net) -> None:
    """Take rows that follow each other."""
    steps, features = net.here[0], prod(net.here[1:])
    if net.here != (1, steps, features):
        net.reshape((1, steps, features))
    name, source = net.fresh("cells"), net.last
    given, values = cell(kind, net.rng, features, int(net.rng.integers(1, 6)))
    held = [net.constant(f"{name}.{n}", each, "int32") for n, each in enumerate(values)]
    for each in held[:2]:
        net.tensors[each] = replace(net.tensors[each], dtype=DType.parse("int8"))
    net.tensors["128ths"] = Tensor("128ths", (1,), DType.parse("int8"), (1 / 128,))
    like = "128ths" if kind is Gru else None
    net.add(kind(name, (source,), name, tuple(held), **given), like=like)
    del net.tensors["128ths"]


def time_filter(net: Net) -> None:
    """Make several filters a unit, over what rows of pixels are."""
    memory, filters = net.here[0], prod(net.here[1:])
    net.reshape((memory, 1, filters))
    rank = int(net.rng.choice([n for n in range(1, filters + 1) if filters % n == 0]))
    name, requant = net.fresh("times"), net.scales(1, memory * rank)
    weights = net.constant(f"{name}.w", net.rng.integers(-127, 128, (filters, memory)))
    bias = net.constant(f"{name}.b", net.rng.integers(-3000, 3000, filters // rank), "int32")
    op = TimeFilter(name, (net.last,), name, (weights, bias), requant=requant)
    net.add(op)


def one_step(kind: type[Recurrent], rng: np.random.Generator) -> tuple[Any, ...]:
    """Draw one step of cells."""
    features, units, made = 3, int(rng.integers(1, 5)), {"int8": 7, "int16": 15, "int32": 0}
    given, values = cell(kind, rng, features, units)
    kinds, wide = ["int8", "int8", "int32", "int32"][: len(values)], kind is not LstmHidden
    states = ["int16"] if kind is Gru else ["int8", "int16"]
    shapes = [(1, 1, features), *[(1, 1, units)] * len(states)]
    named = dict(zip("xhcwrbm", [*shapes], strict=False))
    tensors = {
        name: Tensor(name, shape, DType.parse(kind), (2.0 ** -made[kind],))
        for name, shape, kind in zip(named, named.values(), ["int8", *states], strict=True)
    }
    data = {
        n: rng.integers(t.dtype.minimum, t.dtype.maximum + 1, t.shape) for n, t in tensors.items()
    }
    for name, kind_, each in zip("wrbm", kinds, values, strict=False):
        tensors[name], data[name] = Tensor(name, each.shape, DType.parse(kind_)), each
    dtype = "int16" if wide else "int8"
    tensors["y"] = Tensor("y", (1, 1, units), DType.parse(dtype), (2.0 ** -made[dtype],))
    op = kind("step", tuple(named), "y", tuple("wrbm"[: len(values)]), **given)
    return op, tensors, data
