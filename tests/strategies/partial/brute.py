"""Every derivation that table 2 of Pex allows, tried to its end.

The rules as they are printed, with no more than their printed conditions; a derivation that does
not give a schedule that can run (``runs``) is none. What a schedule needs is found by running it
forwards on names (``peak_of``). Shares no code with the search.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d, Dense
from pipeline.schedules.channels import Channels, Pass
from pipeline.schedules.lower import needed
from pipeline.schedules.whole import Whole
from pipeline.search.channels.search import Rule
from pipeline.search.moves.channels import Schedule
from pipeline.search.view.whole import View

Memory = frozenset[tuple[str, str]]
"""(tensor, "F" or "P"): to be computed, fully or partially."""

Derivation = list[tuple[Rule | None, str]]
"""Backwards; no rule: a loop ends, that is, begins in the order of execution."""


Transition = tuple[Rule, str, Memory, frozenset[str]]


def _full_first(transition: Transition) -> tuple[bool, str, str]:
    """A good bound early."""
    return transition[0] != "full", transition[0], transition[1]


def operators(region: Whole | Channels) -> Sequence[Operator]:
    return [region.op] if isinstance(region, Whole) else region.operators


def runs(schedule: Schedule, view: View) -> bool:
    """Each operator runs once, on inputs that are there in the form it needs; a loop reads whole or
    in slices only what was complete before it, and what it writes is complete after it."""
    run = [op.output for region in schedule for op in operators(region)]
    there, right = {view.names[0]}, sorted(run) == sorted(view.names[1:])
    for region in schedule:
        if isinstance(region, Whole):
            right &= {*region.op.inputs} <= there
            there.add(region.op.output)
            continue
        made, written = set[str](), {*region.accumulated, *region.whole}
        for each in region.passes:
            op, whole = each.op, each.rule == "generate"
            right &= each.rule == "continue" or op.weighted
            right &= {*op.inputs} <= (there if whole else made | (there - written))
            by_channel = {*([] if whole else op.inputs)}
            if each.rule != "accumulate":
                made.add(op.output)
                by_channel.add(op.output)
            right &= {view.tensors[name].shape[-1] for name in by_channel} <= {region.channels}
        right &= {*region.whole} <= made
        there |= written
    return right


def peak_of(schedule: Schedule, view: View, accumulator_bits: int) -> int:
    """The most nibbles that are live at once."""
    most, there = 0, {view.names[0]}

    def nibbles(names: Iterable[str]) -> int:
        return sum(view.tensors[name].nibbles for name in names)

    for number, region in enumerate(schedule):
        rest = (op for later in schedule[number + 1 :] for op in operators(later))
        needed = {view.names[n] for n in view.kept}.union(*(op.inputs for op in rest))
        if isinstance(region, Whole):
            dying = {*region.op.overwritable(view.tensors)} - needed
            most = max(most, nibbles(there | ({region.op.output} if not dying else set())))
            there.add(region.op.output)
        else:
            written, made = {*region.accumulated, *region.whole}, set[str]()
            sums = (view.tensors[name] for name in region.accumulated)
            wider = (each.size * accumulator_bits // 4 - each.nibbles for each in sums)
            fixed = nibbles(there | written) + sum(max(0, each) for each in wider)
            for turn, each in enumerate(region.passes):
                made |= {each.op.output} - written
                read = {name for later in region.passes[turn:] for name in later.op.inputs}
                rings = nibbles(made & (read | {each.op.output}))
                most = max(most, fixed + rings // region.channels * region.at_once)
            there |= written
        there &= needed
    return most


@dataclass
class Brute:
    graph: Graph
    accumulator_bits: int = 8
    best: tuple[float, int] = (float("inf"), 0)
    derivations: int = 0
    seen: dict[str, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.operators = needed(self.graph)
        tensors, output = self.graph.tensors, self.graph.output
        self.view = View.of(tensors, self.graph.inputs, self.operators, output)
        self.makers = {op.output: op for op in self.operators}
        for op in self.operators:
            before = (self.seen.get(name, set()) | {name} for name in op.inputs)
            self.seen[op.output] = set().union(*before)

    def channels(self, name: str) -> int:
        return self.graph.tensors[name].shape[-1]

    def optimum(self) -> tuple[float, int]:
        """The least peak in bytes, and the fewest accumulating layers with it."""
        self.extend(frozenset({(self.graph.output, "F")}), frozenset(), [])
        return self.best

    def extend(self, memory: Memory, context: frozenset[str], history: Derivation) -> None:
        held = {name for name, form in memory if form == "F"} | context
        least = sum(self.graph.tensors[name].bytes for name in held)
        sums = sum(rule == "accumulate" for rule, _ in history)
        if (least, sums) >= self.best and (least > self.best[0] or sums >= self.best[1]):
            return  # nothing better can come
        if memory == {(self.graph.input, "F")} and not context:
            self.finished(history)
        elif context and all(form == "F" for _, form in memory):
            self.extend(memory, frozenset(), [*history, (None, "")])
        else:
            for rule, name, left, more in sorted(
                self.transitions(memory, context), key=_full_first
            ):
                self.extend(left, context | more, [*history, (rule, name)])

    def transitions(self, memory: Memory, context: frozenset[str]) -> Iterator[Transition]:
        nothing = frozenset[str]()
        for name, form in memory:
            rest, op = memory - {(name, form)}, self.makers.get(name)
            if form == "P" and name not in context:
                yield "slice", name, rest | {(name, "F")}, frozenset({name})
            if form == "F" and self.compatible(name, memory):
                yield "concatenate", name, rest | {(name, "P")}, frozenset({name})
            if op is None or any(name == other or name in self.seen.get(other, set())
                                 for other, _ in rest):  # fmt: skip
                continue
            sums = isinstance(op, Conv2d | Dense) and not self.depthwise(op)
            whole = rest | {(i, "F") for i in op.inputs}
            parts = rest | {(i, "P") for i in op.inputs}
            if form == "F" and not context:
                yield "full", name, whole, nothing
            if form == "P" and not sums and all(
                self.channels(i) == self.channels(name) for i in op.inputs
            ):  # fmt: skip
                yield "continue", name, parts, nothing
            if form == "P" and sums and name not in context:
                yield "generate", name, whole, frozenset(op.inputs)
            fresh = form == "F" and sums and name not in context
            if fresh and self.compatible(op.inputs[0], memory):
                yield "accumulate", name, parts, frozenset({name})

    def depthwise(self, op: Operator) -> bool:
        return isinstance(op, Conv2d) and op.groups == self.channels(op.inputs[0]) > 0 and (
            op.groups == self.channels(op.output)
        )  # fmt: skip

    def compatible(self, name: str, memory: Memory) -> bool:
        partial = {other for other, form in memory if form == "P"}
        return all(self.channels(other) == self.channels(name) for other in partial)

    def finished(self, history: Derivation) -> None:
        self.derivations += 1
        plan = self.schedule(history)
        if not runs(plan, self.view):
            return
        held = peak_of(plan, self.view, self.accumulator_bits)
        sums = sum(rule == "accumulate" for rule, _ in history)
        first = self.graph.tensors[self.graph.input].bytes
        self.best = min(self.best, (max(held / 2, first), sums))

    def schedule(self, history: Derivation) -> Schedule:
        parts, fresh = list[Whole | Channels](), True
        for rule, name in reversed(history):
            if rule is None:
                fresh = True
                continue
            if rule == "full":
                parts.append(Whole(self.makers[name]))
                continue
            if fresh:
                parts.append(Channels("channel", self.channels(name), 1))
                fresh = False
            loop = parts[-1]
            assert isinstance(loop, Channels)
            if rule == "concatenate":
                parts[-1] = replace(loop, whole=(*loop.whole, name))
            elif rule != "slice":
                passes = (*loop.passes, Pass(rule, self.makers[name]))
                parts[-1] = replace(loop, passes=passes)
        return parts
