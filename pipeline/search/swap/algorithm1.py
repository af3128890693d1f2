"""SwapNN's Algorithm 1, run in the planner: which task runs when on the CPU and on the card.

Tasks become READY when all that they depend on is FINISHED, and SELECTED when a buffer of their
pool is allocated. Of those READY the one of the earliest frame, then layer, then tile goes first;
one that gets no buffer is passed over. An input buffer is free after the last compute task of its
tile, a weight buffer after its compute task, an output buffer after it is written.

A tile's weights depend on its input; its compute tasks on both; the write on all compute tasks; and
the input tiles of a layer on all writes of the layer before.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, NamedTuple

from pipeline.errors import ThimbleError
from pipeline.search.swap.cuts import Cut

Kind = Literal["input", "weight", "compute", "write"]
POOLS = ("input", "weight", "write")


class Task(NamedTuple):
    """Number ``weight`` of the tasks of its kind of an input tile: (row, column, part) of the grid.

    Compared as Algorithm 1 does: what stands first decides.
    """

    frame: int
    layer: int
    tile: int
    kind: Kind
    weight: int = 0


@dataclass
class Tile:
    """An input tile while Algorithm 1 runs: its compute tasks to come (the in-degree counter of its
    write), and the turns of the buffers that it holds."""

    row: int
    column: int
    part: int
    computes: int
    input: int = -1
    output: int = -1


class Chosen(NamedTuple):
    """A task in the order in which it starts, and the buffers it uses: the turn of each, which
    modulo the pool's size is its place; -1 where it uses none."""

    task: Task
    row: int
    column: int
    part: int
    input: int
    weight: int
    output: int


class Pool:
    """Buffers of one size. The one free for longest is taken; its turn is a number that modulo
    ``size`` is the buffer, and larger than all turns before."""

    def __init__(self, size: int) -> None:
        self.size, self.last = size, -1
        self.free = deque(range(size))

    def take(self) -> int:
        place = self.free.popleft()
        self.last += 1 + (place - self.last - 1) % self.size
        return self.last

    def give(self, turn: int) -> None:
        self.free.append(turn % self.size)


Times = Callable[[Task, Cut, int, int, int], float]
"""Microseconds of a task of a tile at (row, column, part)."""


class Algorithm1:
    """
    Raises:
        ThimbleError: from ``run``, when no task can go on.
    """

    def __init__(
        self, cuts: Sequence[Cut], frames: int, pools: tuple[int, int, int], times: Times
    ) -> None:
        self.cuts, self.frames, self.times = cuts, frames, times
        self.pools = dict(zip(POOLS, map(Pool, pools), strict=True))
        self.ready: dict[Kind, list[Task]] = {"input": [], "weight": [], "compute": [], "write": []}
        self.orders: dict[str, list[Chosen]] = {"io": [], "cpu": []}
        self.tiles: dict[tuple[int, int], list[Tile]] = {}
        self.writes: dict[tuple[int, int], int] = {}
        self.inside: dict[tuple[int, int, int, int], int] = {}
        self.busy_us = {"io": 0.0, "cpu": 0.0}
        self.left = 0
        for frame in range(frames):
            self.open(frame, 0)

    def open(self, frame: int, layer: int) -> None:
        """The layer before is written: all input tiles of this one are READY."""
        if layer == len(self.cuts):
            return
        cut = self.cuts[layer]
        grid = product(range(len(cut.rows)), range(len(cut.columns)), range(len(cut.parts)))
        computes = max(1, len(cut.weights))
        tiles = [Tile(row, column, part, computes) for row, column, part in grid]
        self.tiles[frame, layer] = tiles
        self.writes[frame, layer] = len(tiles)
        self.left += len(tiles)
        for number in range(len(tiles)):
            self.push(Task(frame, layer, number, "input"))

    def push(self, task: Task) -> None:
        heapq.heappush(self.ready[task.kind], task)

    def run(self) -> float:
        """Microseconds until all is done; the orders are in ``orders``."""
        now, running = 0.0, dict[str, tuple[float, Task]]()
        while self.left or running:
            for track in ("io", "cpu"):
                if track not in running and (task := self.select(track)):
                    tile = self.tile(task)
                    took = self.times(task, self.cuts[task.layer], tile.row, tile.column, tile.part)
                    self.busy_us[track] += took
                    running[track] = now + took, task
            if not running:
                raise ThimbleError(
                    "Algorithm 1 deadlocks: every buffer is held by a task that waits for another; "
                    "try strategy.pools=[1,2,1], smaller strategy.buffer_bytes or more SRAM"
                )
            track = min(running, key=lambda name: (running[name][0], name != "io"))
            now, task = running.pop(track)
            self.finish(task)
        return now

    def tile(self, task: Task) -> Tile:
        return self.tiles[task.frame, task.layer][task.tile]

    def select(self, track: str) -> Task | None:
        """The first READY task that gets its buffer, which is SELECTED."""
        if track == "cpu":
            return self.select_compute()
        able = [
            ready[0]
            for kind, ready in self.ready.items()
            if ready and (kind == "write" or (kind != "compute" and self.pools[kind].free))
        ]
        if not able:
            return None
        task = min(able)
        heapq.heappop(self.ready[task.kind])
        tile, weight = self.tile(task), -1
        if task.kind == "input":
            tile.input = self.pools["input"].take()
        elif task.kind == "weight":
            weight = self.inside[*task[:3], task.weight] = self.pools["weight"].take()
        self.choose("io", task, tile, weight)
        return task

    def select_compute(self) -> Task | None:
        ready, passed, found = self.ready["compute"], list[Task](), None
        while ready and found is None:
            task = heapq.heappop(ready)
            owner = self.owner(task)
            if owner.output < 0 and self.pools["write"].free:
                owner.output = self.pools["write"].take()
            if owner.output < 0:
                passed.append(task)
                continue
            found, tile = task, self.tile(task)
            tile.output = owner.output
            self.choose("cpu", task, tile, self.inside.get((*task[:3], task.weight), -1))
        for task in passed:
            heapq.heappush(ready, task)
        return found

    def choose(self, track: str, task: Task, tile: Tile, weight: int) -> None:
        place = tile.row, tile.column, tile.part
        self.orders[track].append(Chosen(task, *place, tile.input, weight, tile.output))

    def owner(self, task: Task) -> Tile:
        """The tile that holds the output buffer: parts of one sum share the first one's."""
        cut = self.cuts[task.layer]
        if cut.tiling.layer.channelwise or len(cut.parts) == 1:
            return self.tile(task)
        return self.tiles[task.frame, task.layer][task.tile - task.tile % len(cut.parts)]

    def finish(self, task: Task) -> None:
        """Free its buffers and release its successors."""
        cut, tile = self.cuts[task.layer], self.tile(task)
        if task.kind == "input":
            for number in range(len(cut.weights)):
                self.push(task._replace(kind="weight", weight=number))
            if not cut.weights:
                self.push(task._replace(kind="compute"))
        elif task.kind == "weight":
            self.push(task._replace(kind="compute"))
        elif task.kind == "compute":
            if cut.weights:
                self.pools["weight"].give(self.inside.pop((*task[:3], task.weight)))
            tile.computes -= 1
            if not tile.computes:
                self.pools["input"].give(tile.input)
                self.push(task._replace(kind="write", weight=0))
        else:
            self.left -= 1
            last = cut.tiling.layer.channelwise or tile.part == len(cut.parts) - 1
            if last:
                self.pools["write"].give(tile.output)
            key = task.frame, task.layer
            self.writes[key] -= 1
            if not self.writes[key]:
                self.open(task.frame, task.layer + 1)
