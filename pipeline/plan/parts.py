"""Hold what a plan says, well formed or not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pipeline.hardware import Memory
from pipeline.plan.buffers import Buffer
from pipeline.plan.steps import Track


@dataclass(frozen=True)
class Parts:
    """Who computes what, when, and where in memory, for one frame or some in flight together.

    Attributes:
        resident: buffers that hold their tensor before the first step: constants and the inputs.
        outputs: those that hold the results after the last step, in the graph's order.
        states: those that hold what the next call finds, in the graph's order: each lies as the
            resident one of what this call found.
        frames: how many; copy ``f`` of an input's and an output's buffer is frame ``f``'s.
        notes: what the strategy knows about the plan, for the report; ``KEPT`` is a promise.
    """

    graph: str
    strategy: str
    memories: tuple[Memory, ...]
    buffers: tuple[Buffer, ...]
    tracks: tuple[Track, ...]
    resident: tuple[str, ...]
    outputs: tuple[str, ...]
    notes: tuple[tuple[str, bool | int | float | str], ...] = ()
    frames: int = 1
    states: tuple[str, ...] = ()

    @cached_property
    def buffer(self) -> dict[str, Buffer]:
        return {buffer.name: buffer for buffer in self.buffers}

    @cached_property
    def memory(self) -> dict[str, Memory]:
        return {memory.name: memory for memory in self.memories}

    @property
    def output(self) -> str:
        """The buffer of the one output."""
        (only,) = self.outputs
        return only

    @property
    def inputs(self) -> tuple[str, ...]:
        """Buffers that hold the inputs before the first step."""
        places = {(self.buffer[name].memory, self.buffer[name].map) for name in self.states}
        held = {name: self.buffer[name] for name in self.resident}
        return tuple(
            name
            for name, each in held.items()
            if each.role != "constant" and (each.memory, each.map) not in places
        )

    @cached_property
    def on_card(self) -> dict[str, Buffer]:
        """Buffers that lie on a card, by name; without any nothing leaves the chip."""
        return {b.name: b for b in self.buffers if self.memory[b.memory].kind == "block"}
