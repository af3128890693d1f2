"""Contract of every operator of pipeline/graph/operators: one that is there is tested here, with
random cases that tests/passes/growers.py draws."""

import inspect
import pkgutil
from collections.abc import Iterator
from functools import reduce
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.graph import operators
from pipeline.graph.access import Operand, clipped
from pipeline.graph.operator import BoxValues, Operator
from pipeline.graph.tensor import Box, IntArray, Tensor
from tests.comparing import equal
from tests.passes.growers import MAKERS, Case, run
from tests.tiers import quick


def listed() -> Iterator[type[Operator]]:
    """The operators in the folder; those that others only derive from are abstract."""
    for module in pkgutil.iter_modules(operators.__path__, f"{operators.__name__}."):
        for member in vars(import_module(module.name)).values():
            own = inspect.isclass(member) and member.__module__ == module.name
            if own and issubclass(member, Operator) and not inspect.isabstract(member):
                yield member


EVERY = list(listed())
PARTIAL = [kind for kind in EVERY if kind.combine != "whole"]
SEEDS = st.integers(0, 1 << 32)
FEW = settings(max_examples=30)
several = pytest.mark.parametrize("count", quick(1, [30, 100]))
every = pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.__name__)
partial = pytest.mark.parametrize("kind", PARTIAL, ids=lambda kind: kind.__name__)


def drawn(kind: type[Operator], seed: int) -> tuple[Case, np.random.Generator]:
    assert kind in MAKERS, f"draw cases of {kind.__name__} in tests/passes/growers.py"
    rng = np.random.default_rng(seed)
    return MAKERS[kind](rng), rng


def whole_regions(tensors: dict[str, Tensor], values: dict[str, IntArray]) -> dict[str, BoxValues]:
    return {name: BoxValues(tensors[name].box, each[None]) for name, each in values.items()}


def cut(region: BoxValues, box: Box) -> BoxValues:
    """The part of a whole tensor's ``region`` inside ``box``."""
    inside = clipped(box, region.values.shape[1:])
    return BoxValues(inside, region.values[:, *(slice(*each) for each in inside)])


def read(op: Operator, tensors: dict[str, Tensor]) -> list[Operand]:
    return [operand for term in op.terms(tensors) for operand in term.operands]


@several
@every
def test_a_box_of_outputs_needs_just_the_regions_it_declares(
    kind: type[Operator], count: int
) -> None:
    """A part computed from the declared regions alone equals its part of the whole."""

    for seed in range(count):
        (op, tensors, values), rng = drawn(kind, seed)
        whole = run(op, tensors, values)
        assert whole.shape == op.infer(tensors) == tensors["y"].shape
        low = [int(rng.integers(0, extent)) for extent in whole.shape]
        box: Box = tuple(
            (a, int(rng.integers(a + 1, extent + 1)))
            for a, extent in zip(low, whole.shape, strict=True)
        )
        regions = whole_regions(tensors, values)
        for operand in read(op, tensors):
            regions[operand.tensor] = cut(regions[operand.tensor], operand.region(box))
        part = op.finish(tensors, box, op.accumulate(tensors, box, regions), regions)[0]
        equal(part, whole[tuple(slice(*each) for each in box)])


@every
def test_nothing_is_declared_that_is_not_read(kind: type[Operator]) -> None:
    """Cut off each end along each axis of the region that one output element declares: without it,
    the result is another one for some of the cases."""
    declared, mattered = set(), set()
    for seed in range(120):
        (op, tensors, values), rng = drawn(kind, seed)
        place = [int(rng.integers(extent)) for extent in tensors["y"].shape]
        box: Box = tuple((at, at + 1) for at in place)
        regions = whole_regions(tensors, values)
        full = op.accumulate(tensors, box, regions)
        for number, operand in enumerate(read(op, tensors)):
            needed = clipped(operand.region(box), tensors[operand.tensor].shape)
            for axis, (start, stop) in enumerate(needed):
                for end, kept in (("first", (start + 1, stop)), ("last", (start, stop - 1))):
                    if stop - start < 2:
                        continue
                    declared.add((number, axis, end))
                    some: Box = (*needed[:axis], kept, *needed[axis + 1 :])
                    less = {operand.tensor: cut(regions[operand.tensor], some)}
                    if not np.array_equal(op.accumulate(tensors, box, {**regions, **less}), full):
                        mattered.add((number, axis, end))
    assert mattered == declared


@several
@partial
def test_disjoint_parts_combine_to_the_whole_and_stay_in_bounds(
    kind: type[Operator], count: int
) -> None:
    for seed in range(count):
        (op, tensors, values), rng = drawn(kind, seed)
        box = tensors["y"].box
        regions = whole_regions(tensors, values)
        whole = op.accumulate(tensors, box, regions)
        name = op.inputs[int(rng.integers(len(op.inputs)))]
        axis = int(rng.integers(values[name].ndim))
        at, extent = int(rng.integers(0, values[name].shape[axis] + 1)), values[name].shape[axis]
        terms = [{operand.tensor for operand in term.operands} for term in op.terms(tensors)]
        beside = set().union(*(term for term in terms if name in term))
        parts = []
        for low, high in ((0, at), (at, extent)):
            piece: Box = (*tensors[name].box[:axis], (low, high), *tensors[name].box[axis + 1 :])
            some = {**regions, name: cut(regions[name], piece)}
            if parts:  # terms that do not read it are in the first part
                for other in set().union(*terms) - beside:
                    some[other] = cut(regions[other], tuple((0, 0) for _ in tensors[other].shape))
            parts.append(np.broadcast_to(op.accumulate(tensors, box, some), whole.shape))
        equal(reduce(op.reduction.join, parts), whole)
        least, most = op.partial_sums(tensors, values)
        for sums in (*parts, whole):
            assert least <= sums.min() and sums.max() <= most


# --- what operators say about themselves


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
def test_an_input_element_changes_no_more_outputs_than_is_said(
    kind: type[Operator], seed: int
) -> None:
    """Check that an element-wise operator changes only the output in its place, a channel-wise one
    those of its channel; what may be overwritten is as large."""
    case, rng = drawn(kind, seed)
    op, tensors, _ = case
    name, index, changed = influence(case, rng)
    for output in changed:
        aligned = output[len(output) - len(index) :]
        extents = tensors[name].shape
        here = all(i == o or n == 1 for i, o, n in zip(index, aligned, extents, strict=False))
        assert here or not kind.element_wise
        assert output[-1] == index[-1] or not op.channel_wise(tensors)
    if kind.element_wise and name in op.overwritable(tensors):
        assert all(tuple(output) == index for output in changed)
    for over in op.overwritable(tensors):
        assert tensors[over].size == tensors["y"].size and over in op.inputs
    assert kind.fixed_shape == any(hasattr(op, field) for field in ("shape", "size", "firsts"))


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
        assert tensors[weights].shape[-1] == tensors[op.inputs[0]].shape[-1]


@pytest.mark.parametrize("property", ["accumulates", "slides", "weighted"])
def test_who_has_partial_sums_can_join_them(property: str) -> None:
    having = [kind for kind in EVERY if getattr(kind, property)]
    assert having and all(kind.combine != "whole" and kind.accumulates for kind in having)
