"""Rates from which a step's time follows: one for computing, and a card's for moving.

Both planners and the simulator of ``pipeline.timing`` take their times from here. The two settings
of a card's times (``Card.timing``) are never mixed: one ``Rates`` has one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan, PlanError
from pipeline.sealing import TAG_BYTES, Cost, piece_bytes

NOT_SEALED = Cost(0.0, 0.0)
KERNELS_US = "kernels_us"
"""A plan's note: for each operator in the graph's order the microseconds of its kernel; 0: it takes
what the rate says."""
ALONE_US = "alone_us"
"""Another: the microseconds of all kernels, each by itself; none where one has none."""


@dataclass(frozen=True)
class Transfers:
    """Costs of moving bytes in one direction, in microseconds.

    Attributes:
        byte_us: of a byte.
        command_us: of a transfer of adjacent blocks, besides.
        block_us: of each block that it touches, besides.
    """

    byte_us: float
    command_us: float = 0.0
    block_us: float = 0.0


@dataclass(frozen=True)
class Rates:
    """Times of steps.

    Attributes:
        work_us: of one unit of work (``work``).
        read, write: of what leaves, and of what reaches, the card.
        block_bytes: of a card's block; 1: transfers have any size.
        sealing: what the core takes to seal and open, while nothing is computed or moved.
        clock_hz: the core's; 0 where it seals nothing.
        dma: transfers go on beside computing; else nothing does beside anything.
        channels: that kernels compute together: others take as long as more.
    """

    work_us: float
    read: Transfers
    write: Transfers
    block_bytes: int = 1
    sealing: Cost = NOT_SEALED
    clock_hz: int = 0
    dma: bool = True
    channels: int = 1

    @cached_property
    def sealed(self) -> bool:
        return self.sealing != NOT_SEALED

    @classmethod
    def of(cls, hardware: Hardware) -> Rates:
        """Return the model's times: cycles a multiply–accumulate, and the card's."""
        work_us, card = hardware.cycles_per_mac / hardware.clock_hz * 1e6, hardware.card
        if card.timing == "paper":
            same = Transfers(1e6 / card.paper_bytes_per_s)
            return cls(work_us, same, same, dma=card.dma)
        rates = (card.read_bytes_per_s, card.write_bytes_per_s)
        byte_us = [1e6 / rate if rate else 0.0 for rate in rates]
        return cls(
            work_us,
            Transfers(byte_us[0], card.read_command_us, card.read_block_us),
            Transfers(byte_us[1], card.write_command_us, card.write_block_us),
            card.block_bytes,
            hardware.sealing_cost,
            hardware.clock_hz if card.sealed else 0,
            card.dma,
            channels=4,
        )

    def compute_us(self, work: float) -> float:
        return work * self.work_us

    def move_us(self, size: float, writes: bool, commands: int = 1) -> float:
        """Return the time to move ``size`` bytes in ``commands`` pieces that start on blocks; if
        sealed, include the time for that, and write pieces of at most ``piece_bytes``."""
        if not size:
            return 0.0
        if self.sealed and writes:
            commands = max(commands, -(-int(size) // piece_bytes(self.block_bytes)))
        sealing_us = self.sealing.us(size, commands, self.clock_hz) if self.sealed else 0.0
        return self.blocks_us(size, self.blocks(size, commands), commands, writes) + sealing_us

    def blocks(self, size: float, commands: int = 1) -> int:
        """Return the fewest blocks that ``size`` bytes in ``commands`` pieces can lie in."""
        tags = commands * TAG_BYTES if self.sealed else 0
        return max(commands, -(-(int(size) + tags) // self.block_bytes))

    def blocks_us(self, size: float, blocks: int, commands: int, writes: bool) -> float:
        """Return the time to move ``size`` bytes in ``blocks`` blocks, each transferred whole."""
        rate = self.write if writes else self.read
        passing = blocks * self.block_bytes if self.block_bytes > 1 else size
        return passing * rate.byte_us + commands * rate.command_us + blocks * rate.block_us


def work(op: Operator, graph: Graph) -> int:
    """Multiply–accumulates of ``op``; where it has none, the values it compares or adds."""
    size = graph.tensors[op.output].size
    return op.macs(graph.tensors) or size * op.atoms(graph.tensors)


def note_us(us: Mapping[str, float], graph: Graph) -> tuple[tuple[str, str], ...]:
    """Times of whole operators as a note; none where there are none."""
    text = " ".join(f"{us.get(op.name, 0):.3f}" for op in graph.operators)
    return ((KERNELS_US, text),) if us else ()


def noted_us(plan: Plan, graph: Graph) -> dict[str, float]:
    """Read operators' times from a plan's note, by name; operators without one are left out.

    Raises:
        PlanError: where these are no times.
    """
    times = _times(plan, KERNELS_US, len(graph.operators))
    return {op.name: us for op, us in zip(graph.operators, times, strict=bool(times)) if us}


def noted_alone_us(plan: Plan) -> float:
    """Read what all operators take by themselves from a plan's note.

    Raises:
        PlanError: where this is no time.
    """
    return sum(_times(plan, ALONE_US, 1))


def _times(plan: Plan, note: str, number: int) -> list[float]:
    try:
        times = [float(word) for word in str(dict(plan.notes).get(note, "")).split()]
    except ValueError:
        times = [-1.0]
    if len(times) not in (0, number) or not all(0 <= us < inf for us in times):
        raise PlanError(f"the plan's note {note} is damaged: it should have times, {number}")
    return times
