"""SwapNN's scheduler as a planner: Algorithm 1 decides the order, the plan freezes it.

Each task ends with a signal of its track and waits, before it starts, for the tasks of the other
track that it depends on: the counters alone make the plan right, whatever the times become.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.rates import Rates
from pipeline.plan.vocabulary import Plan, Signal, Step, Track, Wait
from pipeline.strategies.swap.algorithm1 import Algorithm1, Chosen, Task
from pipeline.strategies.swap.cuts import Cut, cut
from pipeline.strategies.swap.emit import Emitter, Pools
from pipeline.strategies.swap.layers import layers
from pipeline.strategies.swap.places import biases, on_card
from pipeline.strategies.swap.roll import rolled
from pipeline.strategies.swap.tiles import tilings


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
    """The orders as steps with waits."""

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

    def track_io(self) -> Iterator[Step]:
        for chosen in self.orders["io"]:
            task, wait = chosen.task, 0
            if task.kind == "input":
                wait = self.released("input", chosen.input, self.pools.input)
            elif task.kind == "weight":
                wait = self.released("weight", chosen.weight, self.pools.weight)
            else:
                wait = self.computed[task[:3]]
            if wait:
                yield Wait("cpu", wait)
            yield from self.emitters[task.layer].moves(chosen)
            yield Signal("io")

    def track_cpu(self) -> Iterator[Step]:
        opened = set[int]()
        for chosen in self.orders["cpu"]:
            task = chosen.task
            first = task._replace(kind="input", weight=0)
            if task.weight == 0:
                yield Wait("io", self.io[first])
            if self.emitters[task.layer].cut.weights:
                yield Wait("io", self.io[task._replace(kind="weight")])
            if chosen.output not in opened:
                opened.add(chosen.output)
                free = self.released("output", chosen.output, self.pools.output)
                if free:
                    yield Wait("io", free)
            yield from self.emitters[task.layer].computes(chosen)
            yield Signal("cpu")


def plan(
    graph: Graph,
    hardware: Hardware,
    name: str,
    buffer_bytes: int,
    shares: tuple[int, int, int],
    frames: int,
    rates: Rates,
) -> Plan:
    """
    Raises:
        ThimbleError: as ``layers``, ``cut`` and ``pools`` do.
    """
    chain = layers(graph)
    sram = hardware.sram_bytes - hardware.stack_reserve_bytes
    sizes = pools(sram, buffer_bytes, shares)
    cuts = [cut(tiling) for tiling in tilings(chain, buffer_bytes)]
    emitters = [Emitter(each, graph, sizes) for each in cuts]

    def took(task: Task, cut: Cut, row: int, column: int, part: int) -> float:
        """As the paper does: all compute tasks of a layer take the same time."""
        if task.kind == "compute":
            return rates.compute_us(cut.tiling.layer.work / cut.computes)
        size = emitters[task.layer].size(Chosen(task, row, column, part, 0, 0, 0), task.kind)
        return rates.move_us(size, task.kind == "write")

    run = Algorithm1(cuts, frames, sizes[1:], took)
    expected_us = run.run()
    frozen = Frozen(emitters, run.orders, sizes)
    cpu, io = rolled(list(frozen.track_cpu())), rolled(list(frozen.track_io()))
    card = next(memory for memory in hardware.memories if memory.kind == "block")
    maps, weights = on_card(chain, graph, frames, card.granule_bytes)
    fixed = biases(chain, graph, hardware)
    held = [buffer for emitter in emitters for buffer in emitter.buffer.values()]
    notes = (
        ("scheduler", "swapnn"),
        ("buffer_bytes", buffer_bytes),
        ("io_tasks", len(run.orders["io"])),
        ("compute_tasks", len(run.orders["cpu"])),
        ("expected_makespan_us", expected_us),
        ("expected_cpu_us", run.busy_us["cpu"]),
        ("expected_io_us", run.busy_us["io"]),
    )
    resident = (graph.input, *(buffer.name for buffer in (*weights, *fixed)))
    return Plan(
        graph.name, name, hardware.memories, (*held, *maps, *weights, *fixed),
        (Track("cpu", cpu), Track("io", io)), resident, graph.output, notes, frames,
    )  # fmt: skip
