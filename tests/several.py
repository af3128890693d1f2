"""Small random networks of several inputs and outputs, and others with states."""

from contextlib import suppress
from dataclasses import replace

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.state import State
from pipeline.passes._edit import edited
from tests.graphs import BLOCKS, Net


def several(seed: int, inputs: int = 2) -> Graph:
    """A random network of two inputs, or one, and one to three outputs, wherever they are made."""
    net = Net((int(np.random.default_rng(seed).integers(4, 13)), 6, 4), np.random.default_rng(seed))
    net.name, rng = f"several{seed}", net.rng
    names = [net.image, *(net.tensor(f"image{n}", net.shape) for n in range(1, inputs))]
    for n, name in enumerate(names):
        made, net.last = net.last, name
        for _ in range(int(rng.integers(not n, 3))):
            BLOCKS[int(rng.integers(len(BLOCKS)))](net)
        if n:
            net.conv(net.tensors[made].shape[2], (1, 1))
            if net.here == net.tensors[made].shape and rng.random() < 0.5:
                net.plus(made, net.last)
            else:  # an output of its own, if not of both
                net.dense(int(rng.integers(1, 9)))
    made = [op.output for op in net.operators if op.output != net.last]
    some = rng.choice(made, min(len(made), int(rng.integers(0, 3))), replace=False).tolist()
    outputs = tuple(rng.permutation([*some, net.last]).tolist())
    operators = tuple(net.operators)
    whole = Graph(net.name, net.tensors, operators, net.constants, tuple(names), outputs)
    return edited(whole, operators)


def recalling(graph: Graph, rng: np.random.Generator) -> Graph:
    """``graph`` with up to two states: an operator reads what a tensor like its input last was."""
    for n in range(2):
        forms = {name: (each.shape, each.dtype) for name, each in graph.tensors.items()}
        likes = [
            (op, name, of.output) for op in graph.operators for name in op.inputs
            for of in graph.operators if forms[of.output] == forms[name]
        ]  # fmt: skip
        if likes and (not n or rng.random() < 0.3):
            reader, name, made = likes[int(rng.integers(len(likes)))]
            with suppress(ThimbleError):
                graph = _recalled(graph, reader, name, made, rng)
    return graph


def _recalled(
    graph: Graph, reader: Operator, name: str, made: str, rng: np.random.Generator
) -> Graph:
    kept = replace(graph.tensors[made], name=f"{made}.before")
    others = [op.renamed({name: kept.name}) if op is reader else op for op in graph.operators]
    low, high = kept.dtype.minimum, kept.dtype.maximum + 1
    with_state = replace(
        graph, tensors={**graph.tensors, kept.name: kept}, operators=tuple(others),
        states=(*graph.states, State(kept.name, made)),
        initial={**graph.initial, kept.name: rng.integers(low, high, kept.shape)},
    )  # fmt: skip
    found = edited(with_state, others)
    if not {*graph.inputs} <= {each for op in found.operators for each in op.inputs}:
        raise ThimbleError("an input that nothing reads")
    return found
