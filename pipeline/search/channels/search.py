"""Pex's derivation rules (Liberis & Lane 2023, table 2 and appendix A), and the search for the
sequence of them with the least peak.

A state goes backwards through the network: it holds what is still to be computed. What the paper
leaves implicit (its conditions alone allow loops that read what they have not finished):

- The loop context is two sets: tensors that the loop reads whole or in slices, and tensors that it
  writes. None is in both, since a loop cannot read fully what it is still making.
- A loop ends as soon as nothing is left partial.

Algorithm 1 keeps one best configuration a state: the least peak, then the fewest accumulating
layers, then the fewest partial steps. What its caller needs besides is the loop context, so the one
kept is not always the best for the caller. The exact search keeps every configuration that no other
beats in peak, accumulating layers and context.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Literal, NamedTuple

from pipeline.graph.operator import Operator, Tensors
from pipeline.search.view.whole import View, members

Kind = Literal["channelwise", "aggregating", "other"]
Rule = Literal["full", "continue", "generate", "accumulate", "slice", "concatenate", "begin"]
Search = Literal["pex", "exact"]


class State(NamedTuple):
    """Masks of tensors.

    Attributes:
        full, part: to be computed, whole or some channels at a time.
        reads, writes: the loop context; empty outside a loop.
        sums: those of ``writes`` that are accumulated.
    """

    full: int
    part: int = 0
    reads: int = 0
    writes: int = 0
    sums: int = 0

    @property
    def context(self) -> int:
        return self.reads | self.writes


START = State(1)
"""Nothing is left to compute: the first tensor is given."""


class Move(NamedTuple):
    """``rule`` makes ``tensor``, given what ``before`` still asks for; or a loop begins."""

    rule: Rule
    tensor: int
    before: State


@dataclass
class Rules:
    """
    Attributes:
        accumulator_bits: of one element while contributions are added to it.
        at_once: channels at a time.
        given: operators keep their order, which keeps networks with many branches small.
        loops: there may be some.
        able: whether a kernel writes so many channels of an operator's output, 0: all of it, over
            those that it is made of, which the published rules know of element-wise ones alone.
    """

    view: View
    accumulator_bits: int = 32
    at_once: int = 1
    given: bool = False
    loops: bool = True
    able: Callable[[Operator, int], bool] = lambda op, at_once: False

    def __post_init__(self) -> None:
        view, each = self.view, self.accumulator_bits // 4
        tensors = [view.tensors[name] for name in view.names]
        self.kinds = [kind(op, view.tensors) for op in view.operators]
        self.channels = [tensor.shape[-1] for tensor in tensors]
        self.at_a_time = [
            t.nibbles // t.shape[-1] * min(self.at_once, t.shape[-1]) for t in tensors
        ]
        # an accumulator at least as narrow as the tensor takes its room
        self.widened = [max(0, tensor.size * each - tensor.nibbles) for tensor in tensors]

    def moves(self, state: State) -> list[Move]:
        """List what the last step before ``state`` may have been."""
        if state.context and not state.part:
            return [Move("begin", 0, State(state.full))]
        wanted = state.full | state.part
        chosen, found = wanted, list[Move]()
        if self.given:
            chosen = 1 << ((state.part or wanted).bit_length() - 1)
        for tensor in members(chosen):
            bit = 1 << tensor
            if state.part & bit:
                before = state._replace(full=state.full | bit, part=state.part & ~bit)
                if not state.context & bit:
                    found.append(Move("slice", tensor, before._replace(reads=state.reads | bit)))
            elif self._loops(state, tensor) and not state.reads & bit:
                before = state._replace(full=state.full & ~bit, part=state.part | bit)
                before = before._replace(writes=state.writes | bit)
                found.append(Move("concatenate", tensor, before))
            if tensor and self._evaluable(state, tensor):
                found += self._computed(state, tensor)
        return [move for move in found if self.loops or move.rule == "full"]

    def _computed(self, state: State, tensor: int) -> list[Move]:
        """Moves that execute an operator."""
        bit, found = 1 << tensor, list[Move]()
        kind, read = self.kinds[tensor - 1], self.view.reads[tensor - 1]
        sums = kind == "aggregating" and not state.context & bit
        rest = state._replace(full=state.full & ~bit, part=state.part & ~bit)
        full, part = (rest._replace(full=rest.full | read), rest._replace(part=rest.part | read))
        if state.part & bit:
            if kind == "channelwise":
                found.append(Move("continue", tensor, part))
            elif sums and not state.writes & read:
                found.append(Move("generate", tensor, full._replace(reads=rest.reads | read)))
            return found
        if not state.context and not state.part:
            found.append(Move("full", tensor, full))
        if sums and self._loops(state, next(members(read))):
            before = part._replace(writes=rest.writes | bit, sums=rest.sums | bit)
            found.append(Move("accumulate", tensor, before))
        return found

    def _evaluable(self, state: State, tensor: int) -> bool:
        """Check that nothing still to be computed, in whatever form, depends on ``tensor``."""
        bit = 1 << tensor
        if state.full & state.part & bit:
            return False
        wanted = (state.full | state.part) & ~bit
        return not any(self.view.ancestors[other] & bit for other in members(wanted))

    def _loops(self, state: State, tensor: int) -> bool:
        """A loop over the channels of ``tensor`` may begin, or is the one being built."""
        return all(self.channels[n] == self.channels[tensor] for n in members(state.part))

    def held(self, move: Move, state: State, context: int, sums: int) -> tuple[int, int]:
        """Return what is live as ``move`` leads to ``state`` in a loop whose complete context is
        ``context``, ``sums`` of it accumulated: the nibbles of whole tensors, and the mask of those
        that are there some channels at a time. Pex's LOCALPMU, for slices and concatenations too.

        A partial tensor of the context is a view.
        """
        bit = 1 << move.tensor
        part = (move.before.part | state.part & bit) & ~context
        full = self.nibbles(move.before.full | context)
        full += sum(self.widened[n] for n in members(sums))
        if self.over(move, state.full | state.part | context) is not None:
            part &= ~bit
        elif move.rule == "full":
            full += self.view.sizes[move.tensor]
        return full, part

    def over(self, move: Move, needed: int) -> int | None:
        """Return the tensor whose place ``move`` takes: one that is not ``needed`` any more."""
        if move.rule not in ("full", "continue"):
            return None
        task, op = self.view.tasks[move.tensor - 1], self.view.operators[move.tensor - 1]
        over = task.over if move.rule == "full" else ()
        if self.able(op, self.at_once if move.rule == "continue" else 0):
            over = task.reads
        return next((n for n in over if not needed >> n & 1), None)

    def nibbles(self, full: int) -> int:
        """Sum the nibbles of whole tensors."""
        return sum(self.view.sizes[n] for n in members(full))


def kind(op: Operator, tensors: Tensors) -> Kind:
    """Pex, definitions 1 to 5."""
    if op.channel_wise(tensors):
        return "channelwise"
    return "aggregating" if op.weighted else "other"


class Found(NamedTuple):
    """A way to compute a state from the network's start.

    Attributes:
        peak: nibbles; 0 where all within a limit are as good.
        accumulated: layers executed by accumulation.
        partial: steps in loops.
        context, sums: the complete context of the loop that the state is in.
        state: that the last step leads to, and the ``move`` that this is.
        rest: how ``move.before`` is computed.
    """

    peak: int
    accumulated: int = 0
    partial: int = 0
    context: int = 0
    sums: int = 0
    state: State = START
    move: Move = Move("begin", 0, START)
    rest: "Found | None" = None

    def beats(self, other: "Found") -> bool:
        return (
            self.peak <= other.peak
            and self.accumulated <= other.accumulated
            and not self.context & ~other.context
            and not self.sums & ~other.sums
        )


@dataclass(frozen=True)
class Best:
    """``steps`` by ``rules``, in the order of execution; ``states``: how many were looked at."""

    rules: Rules
    peak: int
    accumulated: int
    steps: tuple[Found, ...]
    states: int


def search(rules: Rules, kind: Search, most_states: int, limit: float = inf) -> Best | None:
    """Return the best sequence of rules; of those whose peak is within ``limit`` nibbles, if it is
    said, the one with the fewest accumulating layers, then partial steps; None where there are more
    than ``most_states``.
    """
    first = State(sum(1 << tensor for tensor in rules.view.kept))
    known = {START: [Found(rules.nibbles(START.full) if limit == inf else 0)]}
    waiting, moves_of = [first], dict[State, list[Move]]({START: []})
    while waiting:
        state = waiting[-1]
        if state in known:
            waiting.pop()
            continue
        if state not in moves_of:
            if len(moves_of) >= most_states:
                return None
            moves_of[state] = rules.moves(state)
        missing = [move.before for move in moves_of[state] if move.before not in known]
        if missing:
            waiting += missing
            continue
        tried = [
            _after(rules, move, state, rest)
            for move in moves_of[state]
            for rest in known[move.before]
        ]
        if limit < inf:
            tried = [found._replace(peak=0) for found in tried if found.peak <= limit]
        known[state] = _kept(tried, kind)
    best = found = known[first][0]
    steps = list[Found]()
    while found.rest:
        steps.append(found)
        found = found.rest
    return Best(rules, best.peak, best.accumulated, tuple(reversed(steps)), len(moves_of))


def _after(rules: Rules, move: Move, state: State, rest: Found) -> Found:
    if move.rule == "begin":  # the context is complete: all steps of the loop have to hold it
        return rest._replace(
            context=state.context, sums=state.sums, state=state, move=move, rest=rest
        )
    full, part = rules.held(move, state, rest.context, rest.sums)
    return Found(
        peak=max(rest.peak, full + sum(rules.at_a_time[n] for n in members(part))),
        accumulated=rest.accumulated + (move.rule == "accumulate"),
        partial=rest.partial + (move.rule != "full"),
        context=rest.context if state.context else 0,  # a caller outside the loop sees none
        sums=rest.sums if state.context else 0,
        state=state,
        move=move,
        rest=rest,
    )


def _kept(tried: list[Found], kind: Search) -> list[Found]:
    """Return the best first."""
    kept = list[Found]()
    for found in sorted(tried, key=lambda each: each[:3]):
        if not (kept and kind == "pex") and not any(other.beats(found) for other in kept):
            kept.append(found)
    return kept
