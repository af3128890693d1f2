"""How long a step takes: a rate for computing, and a card's for moving."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator


@dataclass(frozen=True)
class Rates:
    """Microseconds.

    Attributes:
        work_us: of one unit of work (``work``).
        read_us, write_us: of one byte that leaves, or reaches, the card.
        command_us: of one transfer, besides.
        block_us: of each block that a transfer touches, besides.
        block_bytes: of a card's block; 1: transfers have any size.
    """

    work_us: float
    read_us: float
    write_us: float
    command_us: float = 0.0
    block_us: float = 0.0
    block_bytes: int = 1

    def compute_us(self, work: float) -> float:
        return work * self.work_us

    def move_us(self, size: float, writes: bool, commands: int = 1) -> float:
        """Of ``size`` bytes in ``commands`` pieces, each in whole blocks."""
        if not size:
            return 0.0
        blocks = max(commands, -(-int(size) // self.block_bytes))
        size = blocks * self.block_bytes if self.block_bytes > 1 else size
        rate = self.write_us if writes else self.read_us
        return size * rate + commands * self.command_us + blocks * self.block_us


def work(op: Operator, graph: Graph) -> int:
    """Multiply–accumulates of ``op``; where it has none, the values it compares or adds."""
    size = graph.tensors[op.output].size
    return op.macs(graph.tensors) or size * op.atoms(graph.tensors)
