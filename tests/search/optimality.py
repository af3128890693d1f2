"""``python -m tests.search.optimality``: how far above the least there is the searches end on small
random networks: the order of whole tensors, their places, both together; the same of rows.

The least is OR-tools' (CP-SAT), and for orders of rows that of ``tests.search.joint.exact``; where
they do not prove it in time, what they prove no network can do without. ``--cases N`` of each, 200.
Ends with 1 where the mean of a problem's gaps is above 1 %, or one above 5 %.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from ortools.sat.python import cp_model

from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.placement.blocks import Profiles, load
from pipeline.placement.place import place
from pipeline.schedules.draft import Draft
from pipeline.schedules.lifetimes import to_place
from pipeline.schedules.lower import needed
from pipeline.schedules.rows import Arrive, RowStep
from pipeline.search.joint.cuts import Cuts
from pipeline.search.joint.least import cuts_of, least, regions
from pipeline.search.moves.whole import ordered, profiles_of
from pipeline.search.order import least_peak
from pipeline.search.view.rows import Units
from pipeline.search.view.whole import View
from tests import graphs
from tests.search.joint.exact import Network, Row, network_of, peak
from tests.search.joint.exact import least_peak as least_of_rows
from tests.strategies import test_ordinary
from tests.strategies.nets import Net
from tests.strategies.test_ordinary import BOARD


def tiny(seed: int) -> Graph:
    """One to three blocks on an image of at most 8 x 6 x 4, with a classifier sometimes."""
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(4, 9)), int(rng.choice([4, 6])), int(rng.integers(1, 5))
    net, last = Net(shape, weights=False), "input"
    for _ in range(int(rng.integers(1, 4))):
        last = _BLOCKS[int(rng.integers(len(_BLOCKS)))](net, last, rng)
    if rng.random() < 0.3:
        last = net.average(last)
    if rng.random() < 0.4:
        last = net.dense(last, int(rng.integers(2, 6)))
    return net.graph(last)


def _chain(net: Net, x: str, rng: np.random.Generator) -> str:
    kernel, stride = int(rng.choice([1, 2, 3])), int(rng.integers(1, 3))
    return net.conv(x, int(rng.choice([1, 2, 4, 6])), kernel, stride)


def _separable(net: Net, x: str, rng: np.random.Generator) -> str:
    return net.separable(x, int(rng.choice([2, 4, 6])), int(rng.integers(1, 3)))


def _residual(net: Net, x: str, rng: np.random.Generator) -> str:
    y = net.conv(x, int(rng.choice([2, 4, 6])), 3)
    return net.add(net.conv(y, net.tensors[x].shape[2], int(rng.choice([1, 3]))), x)


def _inverted(net: Net, x: str, rng: np.random.Generator) -> str:
    return net.inverted(x, net.tensors[x].shape[2], int(rng.choice([2, 3])), 3, 1)


def _excited(net: Net, x: str, rng: np.random.Generator) -> str:
    gate = net.conv(net.average(x), net.tensors[x].shape[2])
    return net.multiply(x, gate)


def _branches(net: Net, x: str, rng: np.random.Generator) -> str:
    stride = int(rng.integers(1, 3))
    y = net.conv(x, int(rng.integers(1, 4)), 3, stride)
    return net.concat(y, net.conv(x, int(rng.integers(1, 4)), 1, stride))


def _pooled(net: Net, x: str, rng: np.random.Generator) -> str:
    height, width, _ = net.tensors[x].shape
    if min(height, width) < 3:
        return net.lookup(x)
    return net.maximum(x, int(rng.integers(2, 4)), int(rng.integers(1, 3)))


_BLOCKS = _chain, _separable, _residual, _inverted, _excited, _branches, _pooled


SECONDS, STATES = 10.0, 50_000
"""Most work of the solver for one network, as it counts it; most sets of rows looked at."""


class SafeOffset(NamedTuple):
    """Nibbles: as found, and the least, or what none can do without."""

    found: int
    least: int

    @property
    def share(self) -> float:
        return (self.found - self.least) / self.least


class Solver:
    """A model of what is to be as small as can be, ``most`` nibbles or fewer."""

    def __init__(self, most: int) -> None:
        self.model = cp_model.CpModel()
        self.most, self.cells = most, self.model.new_int_var(0, most, "cells")

    def least(self) -> int:
        self.model.minimize(self.cells)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.max_deterministic_time = SECONDS
        status = solver.solve(self.model)
        assert status != cp_model.INFEASIBLE, "the solver knows no such way"
        return round(solver.best_objective_bound)

    def address(self, size: int, align: int = 1) -> cp_model.LinearExpr:
        turn = self.model.new_int_var(0, max(0, self.most - size) // align, "")
        self.model.add(turn * align + size <= self.cells)
        return turn * align


def whole(view: View, most: int, placed: bool) -> int:
    """The least peak of all orders, or, ``placed``, the smallest arena; nibbles.

    Step 0 is before the first task. What takes an input's place begins to live one step later, at
    its address.
    """
    solver, end = Solver(most), len(view.tasks)
    model = solver.model
    steps = [model.new_int_var(min(1, n), end * min(1, n), "") for n in range(end + 1)]
    lasts = [model.new_int_var(0, end, "") for _ in view.sizes]
    at = [solver.address(size) for size in view.sizes]
    model.add_all_different(steps)
    taken = [list[cp_model.IntVar]() for _ in view.sizes]
    for n, task in enumerate(view.tasks, 1):
        for tensor in task.reads:
            model.add(steps[n] > steps[tensor])
            model.add(lasts[tensor] >= steps[n])
        for tensor in task.over:
            taken[n].append(here := model.new_bool_var(""))
            model.add(lasts[tensor] == steps[n]).only_enforce_if(here)
            model.add(at[n] == at[tensor]).only_enforce_if(here)
        model.add(sum(taken[n]) <= 1)
    for tensor in view.kept:
        model.add(lasts[tensor] == end)
    lives = list[cp_model.IntervalVar]()
    for n, last in enumerate(lasts):
        model.add(last >= steps[n])
        first, length = (model.new_int_var(0, end + 1, "") for _ in range(2))
        model.add(first == steps[n] + sum(taken[n]))
        lives.append(model.new_interval_var(first, length, last + 1, ""))
    model.add_cumulative(lives, view.sizes, solver.cells)
    if placed:
        pairs = zip(at, view.sizes, strict=True)
        ups = [model.new_fixed_size_interval_var(low, size, "") for low, size in pairs]
        model.add_no_overlap_2d(lives, ups)
    return solver.least()


def arena(profiles: Profiles, overlaps: IntArray, most: int) -> int:
    """The smallest for all profiles; nibbles."""
    solver = Solver(most)
    pairs = zip(profiles.size.tolist(), profiles.align.tolist(), strict=True)
    at = [solver.address(size, align) for size, align in pairs]
    walls: dict[object, list[tuple[int, int]]] = {}
    for over, under, low, high in overlaps.tolist():
        walls.setdefault((over, under), []).append((low, high))
        walls.setdefault((under, over), []).append((-high, -low))
    columns = (profiles.owner, profiles.offset, profiles.cells, profiles.begin, profiles.end)
    parts = enumerate(np.stack(columns, axis=1).tolist())
    for (one, (n, a, x, begin, end)), (other, (m, b, y, first, last)) in combinations(parts, 2):
        if n == m or begin > last or first > end:
            continue
        above = at[n] + a - at[m] - b
        for low, high in walls.get((one, other), [(-x, y)]):
            if low < high:
                below = solver.model.new_bool_var("")
                solver.model.add(above <= low).only_enforce_if(below)
                solver.model.add(above >= high).only_enforce_if(~below)
    return solver.least()


class Life(NamedTuple):
    """Cells from ``at`` on, from step ``begin`` to step ``end``; ``where`` they are needed."""

    at: cp_model.LinearExpr
    size: int
    begin: cp_model.LinearExprT
    end: cp_model.LinearExprT
    where: Sequence[cp_model.IntVar] = ()


def rows_whole(network: Network, most: int) -> int:
    """The smallest arena of all orders of rows, each row in a place of its own but for those of the
    input and of the output. What is written over a dying row may lie below or above its end."""
    solver, graph = Solver(most), network.graph
    model, ends = solver.model, {graph.input: list[cp_model.LinearExpr](), graph.output: []}
    steps = [n for n in range(len(network.steps)) if network.end >> n & 1]
    time = {n: model.new_int_var(1, len(steps), "") for n in steps}
    model.add_all_different(time.values())
    always = model.new_constant(1)
    lives, over = dict[object, Life](), dict[tuple[object, object], list[cp_model.IntVar]]()

    def extreme(numbers: int, first: bool, plus: int = 0) -> cp_model.IntVar:
        found = model.new_int_var(0, len(steps) + 1, "")
        every = [time[n] + plus for n in steps if numbers >> n & 1] or [0]
        (model.add_min_equality if first else model.add_max_equality)(found, every)
        return found

    for name, places in ends.items():
        rows = sum(row[0] == name for row in network.makers)
        base = solver.address(rows * network.size((name, 0)))
        places += [base + n * network.size((name, 0)) for n in range(rows)]
    for row, makers in network.makers.items():
        if makers and not makers & network.end:
            continue  # nothing needs it
        added = makers.bit_count() > 1
        begin = extreme(makers, False, plus=int(added))
        end = extreme(network.readers.get(row, 0) | makers, False)
        last = len(steps) + 1 if row[0] == graph.output else end
        at = ends[row[0]][row[1]] if row[0] in ends else solver.address(network.size(row))
        lives[row] = Life(at, network.size(row), begin, last)
        if added:
            sums = network.sums(network.steps[(makers & -makers).bit_length() - 1])
            lives["sums", row] = Life(solver.address(sums), sums, extreme(makers, True), begin - 1)
    for n, step in ((n, network.steps[n]) for n in steps):
        for other in steps:
            if step.before >> other & 1:
                model.add(time[n] > time[other])
        for row in [] if step.others else step.reads:
            if share := step.shares.get(row[0]):
                share, (made, dying) = share + step.aside, (lives[step.makes], lives[row])
                sides = over[step.makes, row] = [model.new_bool_var("") for _ in range(2)]
                for side in sides:
                    model.add(dying.end == made.begin).only_enforce_if(side)
                model.add(made.at + made.size <= dying.at + share).only_enforce_if(sides[0])
                model.add(made.at >= dying.at + dying.size - share).only_enforce_if(sides[1])
        if step.aside:
            sides = [side for row in step.reads for side in over.get((step.makes, row), ())]
            at = solver.address(step.aside)
            lives["aside", n] = Life(at, step.aside, time[n], time[n], sides)
    for (one, a), (other, b) in combinations(lives.items(), 2):
        apart = [model.new_bool_var("") for _ in range(4)]
        model.add(a.end < b.begin).only_enforce_if(apart[0])
        model.add(b.end < a.begin).only_enforce_if(apart[1])
        model.add(a.at + a.size <= b.at).only_enforce_if(apart[2])
        model.add(b.at + b.size <= a.at).only_enforce_if(apart[3])
        either = [*apart, *over.get((one, other), ()), *over.get((other, one), ())]
        for side in [*a.where, *b.where] or [always]:
            model.add_bool_or(either).only_enforce_if(side)
    return solver.least()


def view_of(number: int) -> View:
    """Make one of two kinds of networks in turn: many short branches, and blocks of real ones."""
    graph = (test_ordinary.random_graph, graphs.random_graph)[number % 2](number)
    return View.of(graph.tensors, graph.inputs, needed(graph), *graph.outputs)


def order_of(number: int) -> SafeOffset:
    view = view_of(number)
    found = least_peak(view)
    return SafeOffset(found.peak, whole(view, found.peak, placed=False))


def place_of(number: int) -> SafeOffset:
    view = view_of(number)
    aligns = [1] * len(view.sizes)
    found = ordered(view, aligns)
    profiles = Profiles(profiles_of(view, aligns, found.order.tasks, found.over))
    return SafeOffset(found.cells, arena(profiles, np.zeros((0, 4), np.int64), found.cells))


def both_of(number: int) -> SafeOffset:
    view = view_of(number)
    found = ordered(view, [1] * len(view.sizes))
    return SafeOffset(found.cells, whole(view, found.cells, placed=True))


def row_order(number: int) -> SafeOffset | None:
    """Half of them stream; None where too many sets of rows would have to be looked at."""
    graph, streamed = tiny(number), number % 2 == 1
    network = network_of(graph, BOARD, streamed)
    best = least_of_rows(network, STATES)
    if best is None:
        return None
    cuts = Cuts(Units(graph, BOARD, needed(graph), streamed))
    planned, pieces = cuts.least()
    units = (cuts.units.units[number] for piece in pieces for number in cuts.order(piece))
    names = (_name(unit.step, graph) for unit in units)
    assert planned == peak(network, [name for name in names if name])
    return SafeOffset(planned, best)


def _name(step: RowStep | Arrive, graph: Graph) -> Row | None:
    if isinstance(step, Arrive):
        return graph.input, step.row
    return (step.op.output, step.row) if step.kind in ("make", "add") else None


def row_place(number: int) -> SafeOffset:
    graph = tiny(number)
    cuts, draft = cuts_of(graph, BOARD), Draft(graph, BOARD)
    parts = regions(cuts, cuts.roomiest(cuts.least()[0]))
    body = [step for part in parts for step in part.steps(draft)]
    profiles, _, overlaps = to_place(draft, body, False, but=True)
    found = place(profiles, overlaps)
    same = found.cells == found.bound == load(profiles, overlaps)
    return SafeOffset(found.cells, found.bound if same else arena(profiles, overlaps, found.cells))


def row_both(number: int) -> SafeOffset | None:
    graph = tiny(number)
    network = network_of(graph, BOARD, False)
    best, found = least_of_rows(network, STATES), least(graph, BOARD).laid.rows
    if best is not None and found > best:
        best = max(best, rows_whole(network, found))
    return None if best is None else SafeOffset(found, best)


PROBLEMS: dict[str, Callable[[int], SafeOffset | None]] = {
    "order": order_of, "places": place_of, "both": both_of,
    "order of rows": row_order, "places of rows": row_place, "both of rows": row_both,
}  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("problems", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--cases", type=int, default=200)
    options = parser.parse_args(arguments)
    wrong = False
    print(f"{'':16}{'networks':>9}{'least':>7}{'mean':>8}{'worst':>8}  of network")
    for name in options.problems:
        every, number = dict[int, float](), 0
        while len(every) < options.cases:
            if found := PROBLEMS[name](number):
                every[number] = found.share
            number += 1
        mean, worst = float(np.mean([*every.values()])), max(every, key=every.__getitem__)
        wrong |= mean > 0.01 or every[worst] > 0.05
        same = sum(share == 0 for share in every.values())
        print(f"{name:16}{len(every):9}{same:7}{mean:8.2%}{every[worst]:8.1%}  {worst}", flush=True)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
