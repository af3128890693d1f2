"""Every order, every choice of what is done in place, every address: for graphs of a few operators.

Shares nothing with the strategies; sizes are in bytes, all tensors int8.
"""

from collections.abc import Iterator
from itertools import count, product

from ortools.sat.python import cp_model

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.add import Add
from pipeline.graph.operators.lookup import Lookup
from pipeline.graph.operators.multiply import Multiply
from pipeline.graph.operators.reshape import Reshape

Life = tuple[int, int, int]
"""Bytes, the first and the last step."""


def needed(graph: Graph) -> list[Operator]:
    reached, before = {graph.output}, set[str]()
    while reached != before:
        before = set(reached)
        reached |= {name for op in graph.operators if op.output in before for name in op.inputs}
    return [op for op in graph.operators if op.output in reached]


def orders(graph: Graph) -> Iterator[list[Operator]]:
    def extend(done: list[Operator], rest: list[Operator]) -> Iterator[list[Operator]]:
        if not rest:
            yield done
        there = {graph.input, *(op.output for op in done)}
        for op in rest:
            if set(op.inputs) <= there:
                yield from extend([*done, op], [other for other in rest if other is not op])

    return extend([], needed(graph))


def places(graph: Graph, order: list[Operator], step: int) -> list[str | None]:
    """None, and each input that the operator at ``step`` may overwrite."""
    op = order[step]
    size, shape = graph.tensors[op.output].size, graph.tensors[op.output].shape
    later = {name for other in order[step + 1 :] for name in other.inputs} | {graph.output}
    dying = [name for name in sorted(set(op.inputs)) if name not in later]
    if isinstance(op, Reshape):
        return [None, *(name for name in dying if graph.tensors[name].size == size)]
    if isinstance(op, (Add, Multiply, Lookup)):
        return [None, *(name for name in dying if graph.tensors[name].shape == shape)]
    return [None]


def lives(
    graph: Graph, order: list[Operator], taken: tuple[str | None, ...], keep_input: bool
) -> list[Life]:
    """Tensors that share a place are one; step 0 is before the first operator."""
    home = {graph.input: graph.input}
    first, last = {graph.input: 0}, {graph.input: 0}
    for step, (op, over) in enumerate(zip(order, taken, strict=True), 1):
        for name in op.inputs:
            last[home[name]] = step
        place = op.output if over is None else home[over]
        home[op.output] = place
        first.setdefault(place, step)
        last[place] = step
    last[home[graph.output]] = len(order)
    if keep_input:
        last[graph.input] = len(order)
    return [(graph.tensors[place].size, first[place], last[place]) for place in first]


def peak(blocks: list[Life]) -> int:
    steps = range(max(last for _, _, last in blocks) + 1)
    return max(sum(size for size, a, b in blocks if a <= step <= b) for step in steps)


def fits(blocks: list[Life], limit: int) -> bool:
    """Check by OR-tools whether there are addresses within ``limit`` bytes."""
    model = cp_model.CpModel()
    lives, places = list[cp_model.IntervalVar](), list[cp_model.IntervalVar]()
    for size, first, last in blocks:
        address = model.new_int_var(0, max(0, limit), "")
        model.add(address + size <= limit)
        places.append(model.new_fixed_size_interval_var(address, size, ""))
        lives.append(model.new_fixed_size_interval_var(first, last + 1 - first, ""))
    model.add_no_overlap_2d(lives, places)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    return solver.solve(model) == cp_model.OPTIMAL


def optimum(graph: Graph, keep_input: bool = False) -> tuple[int, int]:
    """The least peak, and the smallest arena that any plan with that peak has.

    With ``keep_input`` among the plans whose input is there, untouched, at the end.
    """
    variants = {
        tuple(sorted(lives(graph, order, taken, keep_input)))
        for order in orders(graph)
        for taken in product(*(places(graph, order, n) for n in range(len(order))))
        if not (keep_input and graph.input in taken)
    }
    peaks = {variant: peak(list(variant)) for variant in variants}
    least = min(peaks.values())
    best = [list(variant) for variant, most in peaks.items() if most == least]
    arena = next(limit for limit in count(least) if any(fits(blocks, limit) for blocks in best))
    return least, arena
