"""Counts the cycles that a plan takes besides its kernels: nn_init, a call of nn_feed for each byte
of the input, and moves within a memory."""

from math import prod
from typing import NamedTuple

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels.waits import Waits
from pipeline.plan.steps import touched
from pipeline.plan.unrolled import repeated
from pipeline.plan.vocabulary import Compute, Finish, Move, Plan, Step


class Costs(NamedTuple):
    """Cycles.

    Attributes:
        held: of a byte that is copied to its place in a row.
        placed: of one that is put where its element lies, or of 4 bits.
        pooled: of one that is added to its window's sum in a row of them, and ends some.
        added: of one that is added to sums while the program runs; ``ended``: of such a sum.
        taken: of one that the program waits for; ``piece``: of going on behind a piece.
        moved: of an element that a move within a memory permutes.
    """

    held: float
    placed: float
    pooled: float
    added: float
    ended: float
    taken: float
    piece: float
    moved: float


AVR = Costs(
    held=84.0, placed=200.0, pooled=94.0, added=190.0, ended=56.0, taken=165.0, piece=200.0,
    moved=18.0,
)  # fmt: skip
CORTEX_M4 = Costs(
    held=60.0, placed=110.0, pooled=69.0, added=110.0, ended=20.0, taken=95.0, piece=500.0,
    moved=12.0,
)  # fmt: skip
RATES = {"cortex-m0plus": 1.31, "cortex-m33": 0.96, "cortex-m7": 0.62}
"""Other cores' cycles for one of a Cortex-M4."""

DIVIDED, CALLS = 1.46, 0.78
"""So many times more where a pooled byte's column is a division and a remainder; and the part of
what a cycle of portable C waits for instructions which a cycle of feeding does."""


def costs(hardware: Hardware) -> Costs:
    """Return the costs fitted to simulated layers, those of tests/kernels/test_all_work.py."""
    if hardware.core == "avr":
        return AVR
    rate = RATES.get(hardware.cpu, 1.0) * (1 + CALLS * Waits.of(hardware).portable)
    return Costs(*(rate * each for each in CORTEX_M4))


def feeds(step: Step, plan: Plan) -> bool:
    """Return whether ``step`` reads arriving input, so that nn_feed runs it."""
    memories = (plan.buffer[each.buffer].memory for each in touched(step))
    return any(plan.memory[name].kind == "stream" for name in memories)


def feeding_cycles(plan: Plan, graph: Graph, hardware: Hardware) -> float:
    """Count the cycles of feeding the whole input, without kernels that run meanwhile."""
    each, bytes_ = costs(hardware), sum(graph.tensors[name].size for name in graph.inputs)
    parts = [list(repeated([step])) for track in plan.tracks for step in track.steps]
    reads = [n for n, part in enumerate(parts) if any(feeds(step, plan) for step, _ in part)]
    if not reads:
        held = next(plan.buffer[name] for name in plan.resident)
        in_a_row = held.bits >= 8 and held.run(held.box) is not None
        return bytes_ * (each.held if in_a_row else each.placed)
    arriving = [one for part in parts[: reads[-1] + 1] for one in part]
    taken = [(step, times) for step, times in arriving if feeds(step, plan)]
    meanwhile = any(isinstance(step, Compute) and not feeds(step, plan) for step, _ in arriving)
    sums = any(isinstance(step, Compute) and step.partial for step, _ in taken)
    if sums and not meanwhile:
        return bytes_ * each.pooled * (DIVIDED if graph.tensors[graph.input].shape[-1] > 1 else 1)
    targets = [step.dst if isinstance(step, Move) else step.out for step, _ in taken
               if isinstance(step, Move | Compute)]  # fmt: skip
    narrow = any(plan.buffer[target.buffer].bits < 8 for target in targets)
    wide = each.taken if meanwhile else each.held
    ended = sum(times * prod(step.out.size) for step, times in arriving if isinstance(step, Finish))
    byte = each.added if sums else each.placed if narrow else wide
    pieces = sum(times for _, times in taken)
    return bytes_ * byte + pieces * each.piece + ended * each.ended


def moving_cycles(plan: Plan, hardware: Hardware) -> float:
    """Count the cycles of moves within a memory, which permute elements."""
    moved = 0
    for step, times in repeated(step for track in plan.tracks for step in track.steps):
        if isinstance(step, Move):
            source, target = (plan.buffer[each.buffer].memory for each in (step.src, step.dst))
            moved += times * prod(step.src.size) * (source == target)
    return moved * costs(hardware).moved
