"""Needs of a step, against what the operator's windows read, output by output."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.graph.access import Operand, Window
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d, Dense
from pipeline.plan.vocabulary import Lin, value
from pipeline.schedules.bounds import Needs, Range, added, all_of, hull, ranges, reach, read, taps
from tests.graphs import random_graph
from tests.passes.growers import MAKERS
from tests.plan.reference_places import atoms, window


@pytest.mark.parametrize("seed", range(25))
def test_a_box_needs_what_its_elements_read(seed: int) -> None:
    """The box that is said holds every index that is read, and begins and ends with one."""
    rng, graph = np.random.default_rng(seed), random_graph(seed)
    tensors = graph.tensors
    for op in graph.operators:
        shape = tensors[op.output].shape
        low = [int(rng.integers(n)) for n in shape]
        high = [int(rng.integers(a + 1, n + 1)) for a, n in zip(low, shape, strict=True)]
        made = ranges(tuple(zip(low, high, strict=True)))
        found = Needs(op, tensors)(made)
        for name in {operand.tensor for operand in op.reads(tensors)}:
            read = {
                element
                for place in product(*(range(a, b) for a, b in zip(low, high, strict=True)))
                for operand in op.reads(tensors)
                if operand.tensor == name
                for element in window(operand, place)
            }
            for axis, extent in enumerate(tensors[name].shape):
                used = {element[axis] for element in read if 0 <= element[axis] < extent}
                low_said, size = found[name][axis]
                if used:
                    assert isinstance(low_said, int)
                    assert (low_said, low_said + size) == (min(used), max(used) + 1), (op, name)


@pytest.mark.parametrize("divide", [1, 2, 3, 12])
@pytest.mark.parametrize("step", [2, 3, 6])
def test_a_range_that_moves_reads_what_each_pass_reads(divide: int, step: int) -> None:
    """In each pass at least that, and where it can be said exactly just that."""
    window = Window(0, 3, 2, -1, 1, divide)
    moving = Range(Lin(0, (("n", step),)), step)
    found = read(window, (moving,), (12,), 100)
    moves = isinstance(found.low, Lin)
    for n in range(12 // step):
        here = read(window, (Range(n * step, step),), (12,), 100)
        here = here if moves else here.clipped(100)
        low, env = value(found.low, {"n": n}), value(here.low, {})
        assert low <= env and env + here.size <= low + found.size
        if moves and step % divide == 0:
            assert (low, found.size) == (env, here.size)


def test_what_does_not_move_together_is_all_of_the_axis() -> None:
    one, other = Range(Lin(0, (("n", 2),)), 2), Range(Lin(1, (("n", 2),)), 2)
    assert hull(one, other, 9) == Range(Lin(0, (("n", 2),)), 3)
    assert hull(one, Range(Lin(0, (("n", 1),)), 2), 9) == Range(0, 9)
    assert all(
        hull(Range(a, 2), Range(b, 3), 9) == Range(min(a, b), max(a + 2, b + 3) - min(a, b))
        for a, b in product(range(4), repeat=2)
    )


@pytest.mark.parametrize("kind", [Conv2d, Dense])
def test_parts_of_sums_are_made_of_what_they_say(kind: type[Operator]) -> None:
    """Each atom of an output is in exactly one part of the last axis: none is lost, none twice."""
    rng, tried = np.random.default_rng(5), 0
    for _ in range(40):
        op, tensors, _ = MAKERS[kind](rng)
        if getattr(op, "groups", 1) > 1:
            continue
        tried += 1
        made = all_of(tensors[op.output].shape)
        depth = tensors[op.inputs[0]].shape[-1]
        cut = int(rng.integers(depth + 1))
        parts = [added(op, tensors, made, Range(a, b - a)) for a, b in ((0, cut), (cut, depth))]
        assert all(set(part) == {op.inputs[0], op.parameters[0]} for part in parts)
        terms = op.terms(tensors)
        held = [{name: tuple(r.ends for r in box) for name, box in p.items()} for p in parts]
        everything = {name: tuple((0, n) for n in tensors[name].shape) for name in held[0]}
        for place in product(*map(range, tensors[op.output].shape)):
            one, other = (atoms(terms, place, each) for each in held)
            assert not one & other
            assert one | other == atoms(terms, place, everything)
    assert tried > 5


windows = st.builds(
    Window, st.just(0), st.integers(1, 4), st.integers(1, 4), st.integers(-4, 4), st.integers(1, 3)
)


@settings(max_examples=200, derandomize=True)
@given(windows, st.integers(0, 6), st.integers(1, 5), st.integers(1, 12))
def test_taps_and_reach_of_a_window(each: Window, low: int, size: int, extent: int) -> None:
    made = range(low, low + size)
    every = [i for n in made for (i,) in window(Operand("x", (each,)), (n,))]
    assert taps(each, made, extent) == {i for i in every if 0 <= i < extent}
    assert reach(each, low, size).ends == (min(every), max(every) + 1)
