"""Pex's derivation rules (table 2 and appendix A) and what a step of them needs in memory.

The state goes backwards through the network: it holds what is still to be computed. What the paper
leaves implicit (its conditions alone allow loops that read what they have not finished):

- The loop context is two sets: tensors that the loop reads whole or in slices, and tensors that it
  writes. None is in both, since a loop cannot read fully what it is still making.
- A loop ends as soon as nothing is left partial.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pipeline.search.channels.network import Network, Node
from pipeline.search.work import members

Reach = Literal["orders", "given", "whole"]
Rule = Literal["full", "continue", "generate", "accumulate", "slice", "concatenate"]


class State(NamedTuple):
    """Masks of tensors.

    Attributes:
        full, part: to be computed, whole or some channels at a time.
        reads, writes: the loop context; empty outside a loop.
        sums: those of ``writes`` that are accumulated.
    """

    full: int
    part: int
    reads: int = 0
    writes: int = 0
    sums: int = 0

    @property
    def context(self) -> int:
        return self.reads | self.writes


class Move(NamedTuple):
    """``rule`` makes ``tensor``, given what ``before`` still asks for."""

    rule: Rule
    tensor: int
    before: State


@dataclass
class Rules:
    """``at_once``: channels at a time; ``reach``: all ``orders``; only the ``given`` one, which
    keeps networks with many branches small; or that and only ``whole`` operators."""

    network: Network
    at_once: int = 1
    reach: Reach = "orders"
    _sizes: dict[int, int] = field(default_factory=dict)

    @property
    def first(self) -> State:
        return State(1 << self.network.result, 0)

    def ended(self, state: State) -> bool:
        return state == State(1, 0)

    def loop_ended(self, state: State) -> bool:
        return not state.part and bool(state.context)

    def moves(self, state: State) -> list[Move]:
        """What the last step before ``state`` may have been."""
        wanted = state.full | state.part
        chosen, found = wanted, list[Move]()
        if self.reach != "orders":
            chosen = 1 << ((state.part or wanted).bit_length() - 1)
        for tensor in members(chosen):
            bit, node = 1 << tensor, self.network.node(tensor)
            if state.part & bit:
                if not state.context & bit:
                    found.append(Move("slice", tensor, _slice(state, bit)))
            elif self._loops(state, tensor) and not state.reads & bit:
                found.append(Move("concatenate", tensor, _concatenate(state, bit)))
            if node is not None and self._evaluable(state, tensor):
                found += self._computed(state, tensor, node)
        return [move for move in found if self.reach != "whole" or move.rule == "full"]

    def _computed(self, state: State, tensor: int, node: Node) -> list[Move]:
        """Moves that execute an operator."""
        bit, found = 1 << tensor, list[Move]()
        if state.part & bit:
            rest = state._replace(part=state.part & ~bit)
            if node.kind == "channelwise":
                found.append(Move("continue", tensor, rest._replace(part=rest.part | node.reads)))
            elif node.kind == "aggregating" and not (
                state.context & bit or state.writes & node.reads
            ):
                before = rest._replace(full=rest.full | node.reads, reads=rest.reads | node.reads)
                found.append(Move("generate", tensor, before))
            return found
        rest = state._replace(full=state.full & ~bit)
        if not state.context and not state.part:
            found.append(Move("full", tensor, rest._replace(full=rest.full | node.reads)))
        accumulates = node.kind == "aggregating" and not state.context & bit
        if accumulates and self._loops(state, next(members(node.reads))):
            before = rest._replace(
                part=rest.part | node.reads, writes=rest.writes | bit, sums=rest.sums | bit
            )
            found.append(Move("accumulate", tensor, before))
        return found

    def _evaluable(self, state: State, tensor: int) -> bool:
        """Nothing that is still to be computed, in whatever form, depends on ``tensor``."""
        bit = 1 << tensor
        if state.full & state.part & bit:
            return False
        wanted = (state.full | state.part) & ~bit
        return not any(self.network.ancestors[other] & bit for other in members(wanted))

    def _loops(self, state: State, tensor: int) -> bool:
        """A loop over the channels of ``tensor`` may begin, or is the one being built."""
        channels = self.network.channels
        return all(channels[other] == channels[tensor] for other in members(state.part))

    def needed(self, move: Move, state: State, context: int, sums: int) -> int:
        """Nibbles held while ``move`` leads to ``state`` in a loop whose complete context is
        ``context``, ``sums`` of it accumulated: Pex's LOCALPMU, for slices and concatenations too.

        A partial tensor of the context is a view. An element-wise operator outside loops takes the
        place of an input that dies.
        """
        network, bit = self.network, 1 << move.tensor
        part = (move.before.part | state.part & bit) & ~context
        held = self.bytes_of(move.before.full | context)
        held += sum(network.widened(t) for t in members(sums))
        held += sum(network.part(t) * min(self.at_once, network.channels[t]) for t in members(part))
        if move.rule == "full":
            node = network.node(move.tensor)
            assert node is not None
            if not node.over & ~state.full:
                held += network.sizes[move.tensor]
        return held

    def bytes_of(self, full: int) -> int:
        """Nibbles of whole tensors."""
        if full not in self._sizes:
            self._sizes[full] = sum(self.network.sizes[t] for t in members(full))
        return self._sizes[full]


def _slice(state: State, bit: int) -> State:
    return state._replace(full=state.full | bit, part=state.part & ~bit, reads=state.reads | bit)


def _concatenate(state: State, bit: int) -> State:
    return state._replace(full=state.full & ~bit, part=state.part | bit, writes=state.writes | bit)
