"""What operators say about themselves, tried: an input element that changes changes no more outputs
than they say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from pipeline.graph.operator import Operator
from pipeline.graph.tensor import IntArray
from tests.contracts.operators import Case, run
from tests.contracts.test_operators import EVERY, FEW, SEEDS, drawn, every


def influence(case: Case, rng: np.random.Generator) -> tuple[str, tuple[int, ...], IntArray]:
    """An input, the index of an element of it, and the outputs that may change with it."""
    op, tensors, values = case
    name = op.inputs[rng.integers(len(op.inputs))]
    index = tuple(int(rng.integers(extent)) for extent in tensors[name].shape)
    found = []
    for stored in (-128, -1, 127):
        changed = values[name].copy()
        changed[index] = stored
        found.append(run(op, tensors, {**values, name: changed}))
    return name, index, np.argwhere(np.ptp(np.stack(found), axis=0))


@every
@given(SEEDS)
@FEW
def test_who_is_element_wise_stays_in_place(kind: type[Operator], seed: int) -> None:
    case, rng = drawn(kind, seed)
    op, tensors, _ = case
    name, index, changed = influence(case, rng)
    for output in changed:
        aligned = output[len(output) - len(index) :]
        extents = tensors[name].shape
        here = all(i == o or n == 1 for i, o, n in zip(index, aligned, extents, strict=False))
        assert here or not kind.element_wise
    if kind.element_wise and name in op.overwritable(tensors):
        assert all(tuple(output) == index for output in changed)


@every
@given(SEEDS)
@FEW
def test_who_is_channel_wise_keeps_channels_apart(kind: type[Operator], seed: int) -> None:
    case, rng = drawn(kind, seed)
    op, tensors, _ = case
    _, index, changed = influence(case, rng)
    if op.channel_wise(tensors):
        assert all(output[-1] == index[-1] for output in changed)


@every
@given(SEEDS)
@FEW
def test_what_is_overwritten_is_as_large(kind: type[Operator], seed: int) -> None:
    op, tensors, _ = drawn(kind, seed)[0]
    for name in op.overwritable(tensors):
        assert tensors[name].size == tensors["y"].size
        assert name in op.inputs


@every
@given(SEEDS)
@FEW
def test_weights_lead_with_the_outputs_channels(kind: type[Operator], seed: int) -> None:
    op, tensors, values = drawn(kind, seed)[0]
    if not kind.weighted:
        assert not (op.mixes_channels(tensors) or op.depthwise(tensors))
        return
    weights, bias = op.parameters
    silent = values[weights].copy()
    silent[-1] = 0
    louder = values[bias].copy()
    louder[-1] += 1 << 16
    for changed in ({weights: silent}, {bias: louder}):
        difference = run(op, tensors, values) != run(op, tensors, {**values, **changed})
        assert not difference[..., :-1].any()
    if op.mixes_channels(tensors):
        assert tensors[weights].shape[-1] == tensors["x"].shape[-1]


@every
@given(SEEDS)
@FEW
def test_who_has_a_shape_of_its_own_keeps_it(kind: type[Operator], seed: int) -> None:
    op, tensors, _ = drawn(kind, seed)[0]
    assert kind.fixed_shape == hasattr(op, "shape")
    assert op.infer(tensors) == tensors["y"].shape


@pytest.mark.parametrize("property", ["accumulates", "slides", "weighted"])
def test_who_has_partial_sums_can_join_them(property: str) -> None:
    having = [kind for kind in EVERY if getattr(kind, property)]
    assert having and all(kind.combine != "whole" and kind.accumulates for kind in having)
