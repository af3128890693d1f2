"""SwapNN's scheduler as a planner: Algorithm 1 decides the order, the plan freezes it.

Each task ends with a signal of its track and waits, before it starts, for the tasks of the other
track that it depends on: the counters alone make the plan right, whatever the times become.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.plan.rates import Rates
from pipeline.schedules.swapped import Job, Swapped
from pipeline.search.swap.algorithm1 import Algorithm1, Chosen, Task
from pipeline.search.swap.cuts import Cut, cut
from pipeline.search.swap.emit import Emitter, Pools
from pipeline.search.swap.layers import Proposal, TiledLayer, homes
from pipeline.search.swap.tiles import tiling


def pools(sram_bytes: int, buffer_bytes: int, shares: tuple[int, int, int]) -> Pools:
    """``shares`` of all buffers for input, weight and output tiles; of the fewest that are enough
    where SRAM is too small even for these, so that there is a plan that says what it needs.

    Raises:
        ThimbleError: for shares with which Algorithm 1 can deadlock.
    """
    number, total = sram_bytes // buffer_bytes, sum(shares)
    if min(shares) < 1:
        raise ThimbleError(f"strategy.pools={list(shares)}: every pool needs buffers; try [1,2,1]")
    if shares[2] < shares[0]:
        raise ThimbleError(
            f"strategy.pools={list(shares)} can deadlock: with fewer output than input buffers, "
            "input tiles can be loaded whose outputs find no buffer, and their weights fill the "
            "pool that the tiles which hold the outputs wait for; try [1,2,1]"
        )
    number = max(number, *(-(-total // share) for share in shares))
    sizes = [number * share // total for share in shares]
    return Pools(buffer_bytes, sizes[0], sizes[1], sizes[2])


@dataclass
class Frozen:
    """The orders as jobs that wait for each other."""

    emitters: list[Emitter]
    orders: dict[str, list[Chosen]]
    pools: Pools

    def __post_init__(self) -> None:
        self.io = {chosen.task: n for n, chosen in enumerate(self.orders["io"], 1)}
        self.used: dict[tuple[str, int], int] = {}
        self.computed: dict[tuple[int, int, int], int] = {}
        self.written: dict[int, int] = {}
        for n, chosen in enumerate(self.orders["cpu"], 1):
            self.used["input", chosen.input] = n
            self.used["weight", chosen.weight] = n
            self.computed[chosen.task[:3]] = n
        for n, chosen in enumerate(self.orders["io"], 1):
            if chosen.task.kind == "write":
                self.written[chosen.output] = n  # of several parts, the last
        self.turns: dict[tuple[str, int], int] = {}

    def released(self, pool: str, turn: int, size: int) -> int:
        """The number of the task that released the buffer which ``turn`` takes; 0: it is new."""
        before = self.turns.get((pool, turn % size))
        self.turns[pool, turn % size] = turn
        if before is None:
            return 0
        return self.written[before] if pool == "output" else self.used[pool, before]

    def moving(self) -> Iterator[Job]:
        for chosen in self.orders["io"]:
            task = chosen.task
            if task.kind == "input":
                after = self.released("input", chosen.input, self.pools.input)
            elif task.kind == "weight":
                after = self.released("weight", chosen.weight, self.pools.weight)
            else:
                after = self.computed[task[:3]]
            yield Job(after, tuple(self.emitters[task.layer].moves(chosen)))

    def computing(self) -> Iterator[Job]:
        opened = set[int]()
        for chosen in self.orders["cpu"]:
            task, after = chosen.task, 0
            if task.weight == 0:
                after = self.io[task._replace(kind="input")]
            if self.emitters[task.layer].cut.weights:
                after = self.io[task._replace(kind="weight")]
            if chosen.output not in opened:
                opened.add(chosen.output)
                after = max(after, self.released("output", chosen.output, self.pools.output))
            yield Job(after, tuple(self.emitters[task.layer].computes(chosen)))


def schedule(
    graph: Graph,
    chain: Sequence[TiledLayer],
    sizes: Pools,
    frames: int,
    rates: Rates,
) -> Proposal:
    """
    Raises:
        ThimbleError: as ``cut`` and ``Algorithm1`` do.
    """
    cuts = [cut(tiling(layer, sizes.buffer_bytes)) for layer in chain]
    emitters = [Emitter(each, graph, sizes) for each in cuts]

    def took(task: Task, cut: Cut, row: int, column: int, part: int) -> float:
        """As the paper does: all compute tasks of a layer take the same time."""
        if task.kind == "compute":
            return rates.compute_us(cut.tiling.layer.work / cut.computes)
        size = emitters[task.layer].size(Chosen(task, row, column, part, 0, 0, 0))
        return rates.move_us(size, task.kind == "write")

    run = Algorithm1(cuts, frames, sizes[1:], took)
    expected_us = run.run()
    frozen = Frozen(emitters, run.orders, sizes)
    windows = tuple(each for emitter in emitters for each in emitter.windows.values())
    region = Swapped(*homes(chain), windows, tuple(frozen.computing()), tuple(frozen.moving()))
    notes = (
        ("scheduler", "swapnn"),
        ("buffer_bytes", sizes.buffer_bytes),
        ("io_tasks", len(run.orders["io"])),
        ("compute_tasks", len(run.orders["cpu"])),
        ("expected_makespan_us", expected_us),
        ("expected_cpu_us", run.busy_us["cpu"]),
        ("expected_io_us", run.busy_us["io"]),
    )
    return Proposal(region, sizes.buffer_bytes * sum(sizes[1:]), notes)
