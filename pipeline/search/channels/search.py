"""The rules with the least peak: Algorithm 1 of Pex, and a search that is exact.

Algorithm 1 keeps one best configuration a state: the least peak, then the fewest accumulating
layers, then the fewest partial steps. What its caller needs besides is the loop context, so the one
kept is not always the best for the caller. The exact search keeps every configuration that no other
beats in peak, accumulating layers and context.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal, NamedTuple

from pipeline.search.channels.rules import Move, Rules, State

Search = Literal["pex", "exact"]


class TooManyStates(Exception):
    """The network has more states than the search was allowed."""


class Found(NamedTuple):
    """A way to compute a state from the network's start.

    Attributes:
        peak: nibbles.
        accumulated: layers executed by accumulation.
        partial: steps in loops.
        context, sums: the complete context of the loop that the state is in.
        move: the last step, None where a loop begins or nothing is left to do.
        rest: how ``move.before`` is computed.
    """

    peak: int
    accumulated: int
    partial: int
    context: int
    sums: int
    move: Move | None
    rest: Found | None

    @property
    def rank(self) -> tuple[int, int, int]:
        return self.peak, self.accumulated, self.partial

    @property
    def work(self) -> tuple[int, int]:
        return self.accumulated, self.partial

    def beats(self, other: Found) -> bool:
        return (
            self.peak <= other.peak
            and self.accumulated <= other.accumulated
            and not self.context & ~other.context
            and not self.sums & ~other.sums
        )


@dataclass(frozen=True)
class Best:
    """``moves`` in the order of execution; ``states``: how many were looked at."""

    peak: int
    accumulated: int
    moves: tuple[Move, ...]
    states: int


def search(rules: Rules, kind: Search, most_states: int, limit: float = inf) -> Best:
    """The best sequence of rules; of those whose peak is within ``limit`` nibbles, if it is said,
    the one with the fewest accumulating layers.

    Raises:
        TooManyStates: when there are more than ``most_states``.
    """
    known: dict[State, list[Found]] = {}
    waiting, moves_of = [rules.first], dict[State, list[Move]]()
    while waiting:
        state = waiting[-1]
        if state in known:
            waiting.pop()
            continue
        if state not in moves_of:
            if len(moves_of) >= most_states:
                raise TooManyStates
            over = rules.ended(state) or rules.loop_ended(state)
            moves_of[state] = [] if over else rules.moves(state)
        if rules.ended(state):
            known[state] = [Found(rules.bytes_of(state.full), 0, 0, 0, 0, None, None)]
            continue
        if rules.loop_ended(state):
            before = State(state.full, 0)
            if before in known:
                known[state] = [_begun(state, rest) for rest in known[before]]
            else:
                waiting.append(before)
            continue
        missing = [move.before for move in moves_of[state] if move.before not in known]
        if missing:
            waiting += missing
            continue
        tried = [
            _after(rules, move, state, rest)
            for move in moves_of[state]
            for rest in known[move.before]
        ]
        known[state] = _kept(tried, kind) if limit == inf else _within(tried, limit)
    best = min(known[rules.first], key=lambda f: f.rank if limit == inf else (*f.work, f.peak))
    moves: list[Move] = []
    step: Found | None = best
    while step is not None:
        if step.move is not None:
            moves.append(step.move)
        step = step.rest
    return Best(best.peak, best.accumulated, tuple(reversed(moves)), len(moves_of))


def _begun(state: State, rest: Found) -> Found:
    """The loop's context is complete: it is what its steps, all later, have to hold."""
    return rest._replace(context=state.context, sums=state.sums, move=None, rest=rest)


def _after(rules: Rules, move: Move, state: State, rest: Found) -> Found:
    in_loop = move.rule != "full"
    local = rules.needed(move, state, rest.context, rest.sums)
    return Found(
        max(rest.peak, local),
        rest.accumulated + (move.rule == "accumulate"),
        rest.partial + in_loop,
        rest.context if state.context else 0,  # a caller outside the loop sees none
        rest.sums if state.context else 0,
        move,
        rest,
    )


def _within(tried: list[Found], limit: float) -> list[Found]:
    """Of those within a peak, whatever it is, what no other beats in work and context."""
    kept: list[Found] = []
    for found in sorted((f for f in tried if f.peak <= limit), key=lambda found: found.work):
        if not any(other._replace(peak=0).beats(found) for other in kept):
            kept.append(found)
    return kept


def _kept(tried: list[Found], kind: Search) -> list[Found]:
    tried = sorted(tried, key=lambda found: found.rank)
    if kind == "pex":
        return tried[:1]
    kept: list[Found] = []
    for found in tried:
        if not any(other.beats(found) for other in kept):
            kept.append(found)
    return kept
