"""Where a row may be written over another, against all that is read and written one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.kernels import named
from pipeline.kernels.cortex_m.by_row.base import RowKernel, Turns
from pipeline.search.layouts import form_of_a_row
from tests.codegen.cortex_m.by_row.layers import KINDS
from tests.codegen.cortex_m.support import core


def conflicts(turns: Turns, apart: int) -> bool:
    """Whether a byte that is written lies where one is still to be read."""
    return any(
        0 <= at + apart < len(turns.read) and turns.read[at + apart] > turn
        for at, turn in enumerate(turns.written)
    )


def allowed(turns: Turns) -> set[int]:
    every = range(-len(turns.written), len(turns.read) + 1)
    return {apart for apart in every if not turns.forbids(apart)}


@pytest.mark.parametrize("seed", range(40))
def test_what_is_allowed_loses_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes, most = rng.integers(1, 12, 2), int(rng.integers(1, 6))
    turns = Turns(rng.integers(-1, most, sizes[0]), rng.integers(0, most, sizes[1]))
    assert not any(conflicts(turns, apart) for apart in allowed(turns))
    assert not conflicts(turns, turns.latest) and not conflicts(turns, turns.earliest)
    assert turns.exactly == (not conflicts(turns, 0))


@pytest.mark.parametrize("read, written, latest, earliest, exactly", [
    ([0, 1, 2], [0, 1, 2], 0, 3, True),  # forwards
    ([1, 0], [1, 0], -2, 0, True),  # backwards
    ([0, 0, 1, 1], [0, 1], 1, 4, True),  # two for one
    ([0, 1, 0, 1], [0, 1, 0, 1], -2, 4, True),  # two channels in two blocks
    ([0, 0], [0, 0, 0], -1, 0, True),  # all is read first
    ([2, 2], [0, 1], -2, 2, False),
])  # fmt: skip
def test_by_hand(
    read: list[int], written: list[int], latest: int, earliest: int, exactly: bool
) -> None:
    turns = Turns(np.array(read), np.array(written))
    assert (turns.latest, turns.earliest, turns.exactly) == (latest, earliest, exactly)


@pytest.mark.parametrize("kind", KINDS)
def test_what_kernels_say(kind: str) -> None:
    """Each byte that a layer reads or makes has its turn, and those of a part follow each other."""
    for seed in range(30):
        graph, pixels, name = KINDS[kind](np.random.default_rng(seed))
        op = graph.operators[1]
        if kind in ("added", "concat", "dense", "gate"):  # apart, or element by element
            return
        form = form_of_a_row(op, graph, pixels)
        kernel = named(name, form, core())
        assert isinstance(kernel, RowKernel)
        if not kernel.accepts(form):
            continue
        turns = kernel.turns(form)
        assert len(turns.written) == np.prod(graph.tensors[op.output].shape[1:])
        assert len(turns.read) == np.prod(graph.tensors[op.inputs[0]].shape[1:])
        assert turns.written.min() == 0 and turns.written.max() >= turns.read.max()
        over = replace(form, overlaps=frozenset({op.inputs[0]}))
        assert kernel.accepts(over) == (kernel.overlap(form, op.inputs[0]) is not None)
