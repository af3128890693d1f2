"""SwapNN's Algorithm 1, run in the planner: which task runs when on the CPU and on the card.

Tasks become READY when all that they depend on is FINISHED, and SELECTED when a buffer of their
pool is allocated. Of those READY the one of the earliest frame, then layer, then tile goes first;
one that gets no buffer is passed over. An input buffer is free after the last compute task of its
tile, a weight buffer after its compute task, an output buffer after it is written.

A tile's weights depend on its input; its compute tasks on both; the write on all compute tasks; and
the input tiles of a layer on all writes of the layer before.
"""

from bisect import insort
from collections import deque
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, Literal, NamedTuple

from pipeline.errors import ThimbleError
from pipeline.search.swap.tiling import Tiling

Kind = Literal["input", "weight", "compute", "write"]
KINDS: dict[str, tuple[Kind, ...]] = {"io": ("input", "weight", "write"), "cpu": ("compute",)}
"""Kinds of the tasks of each track."""
POOL = {"input": "input", "weight": "weight", "compute": "output"}
"""Pool from which a kind of task takes a buffer."""


class Task(NamedTuple):
    """Number ``number`` of the tasks of its kind of an input tile, compared as Algorithm 1 does:
    what stands first decides.

    Attributes:
        place: (row, column, part) of the tile in the layer's grid.
        after: tasks of the other track that are finished before it starts: those that made it
            READY, and those that freed the buffer it takes.
        input, weight, output: the turns of the buffers that it uses, see ``Pool``.
    """

    frame: int
    layer: int
    tile: int
    kind: Kind
    number: int
    place: tuple[int, int, int]
    after: int = 0
    input: int = -1
    weight: int = -1
    output: int = -1


class Pool:
    """Buffers of one size. The one free for longest is taken; its turn is a number that modulo
    ``size`` is the buffer, and larger than all turns before."""

    def __init__(self, size: int) -> None:
        self.size, self.last = size, -1
        self.free = deque((place, 0) for place in range(size))

    def take(self) -> tuple[int, int]:
        """Return a turn, and the number of the task that gave the buffer back; 0: it is new."""
        place, giver = self.free.popleft()
        self.last += 1 + (place - self.last - 1) % self.size
        return self.last, giver

    def give(self, turn: int, giver: int) -> None:
        self.free.append((turn % self.size, giver))


class Algorithm1:
    """
    Args:
        pools: numbers of buffers for input, weight and output tiles.
        us: microseconds that a task takes.

    Raises:
        ThimbleError: from ``run``, when no task can go on.
    """

    def __init__(
        self, tilings: Sequence[Tiling], frames: int, pools: tuple[int, int, int],
        us: Callable[[Task], float],
    ) -> None:  # fmt: skip
        self.tilings, self.us = tilings, us
        self.pools = dict(zip(POOL.values(), map(Pool, pools), strict=True))
        self.ready: dict[Kind, list[Task]] = {"input": [], "weight": [], "compute": [], "write": []}
        self.orders: dict[str, list[Task]] = {"io": [], "cpu": []}
        self.computes: dict[tuple[int, ...], int] = {}  # to come, of each tile
        self.writes: dict[tuple[int, int], int] = {}  # to come, of each frame's layer
        self.held: dict[tuple[int, ...], int] = {}  # output buffers, by tile
        for frame in range(frames):
            self.open(frame, 0)

    def open(self, frame: int, layer: int) -> None:
        """The layer before is written: all input tiles of this one are READY."""
        if layer == len(self.tilings):
            return
        tiling = self.tilings[layer]
        rows, columns, parts = map(len, (tiling.rows, tiling.columns, tiling.parts))
        places = list(product(range(rows), range(columns), range(parts)))
        self.writes[frame, layer] = len(places)
        for tile, place in enumerate(places):
            self.computes[frame, layer, tile] = max(1, len(tiling.weight_tiles))
            self.push(Task(frame, layer, tile, "input", 0, place))

    def push(self, task: Task) -> None:
        insort(self.ready[task.kind], task)

    def run(self) -> float:
        """Microseconds until all is done; the tasks of each track as they start are ``orders``."""
        now, running = 0.0, dict[str, tuple[float, Task]]()
        while self.writes:
            for track in ("io", "cpu"):
                if track not in running and (task := self.select(track)):
                    self.orders[track].append(task)
                    running[track] = now + self.us(task), task
            if not running:
                raise ThimbleError(
                    "Algorithm 1 deadlocks: every buffer is held by a task that waits for another; "
                    "try strategy.pools=[1,2,1], smaller strategy.buffer_bytes or more SRAM"
                )
            track = min(running, key=lambda name: (running[name][0], name != "io"))
            now, task = running.pop(track)
            self.finish(task, len(self.orders[track]))
        return now

    def select(self, track: str) -> Task | None:
        """Return the first READY task that gets its buffer, which is SELECTED."""
        able = [task for kind in KINDS[track] if (task := self.first(kind))]
        if not able:
            return None
        task = min(able)
        self.ready[task.kind].remove(task)
        if task.kind == "write":
            return task
        owner, pool = self.owner(task), POOL[task.kind]
        if pool == "output" and owner in self.held:
            return task._replace(output=self.held[owner])
        turn, giver = self.pools[pool].take()
        if pool == "output":
            self.held[owner] = turn
        turns: dict[str, Any] = {pool: turn}
        return task._replace(**turns, after=max(task.after, giver))

    def first(self, kind: Kind) -> Task | None:
        """Pick the next READY task of a kind. All of them need the same, except where computing
        goes on with an output buffer that is held."""
        ready = self.ready[kind]
        if kind == "compute" and not self.pools["output"].free:
            return next((task for task in ready if self.owner(task) in self.held), None)
        full = kind in self.pools and not self.pools[kind].free
        return ready[0] if ready and not full else None

    def owner(self, task: Task) -> tuple[int, ...]:
        """Return the tile that holds the output buffer: parts of one sum share the first one's."""
        part = task.place[2] if self.tilings[task.layer].summed else 0
        return task.frame, task.layer, task.tile - part

    def finish(self, task: Task, number: int) -> None:
        """Free its buffers and release its successors; it is the track's task ``number``."""
        tiling, tile = self.tilings[task.layer], task[:3]
        if task.kind == "input" and tiling.weight_tiles:
            for n in range(len(tiling.weight_tiles)):
                self.push(task._replace(kind="weight", number=n, after=0))
        elif task.kind in ("input", "weight"):
            self.push(task._replace(kind="compute", after=number))
        elif task.kind == "compute":
            if tiling.weight_tiles:
                self.pools["weight"].give(task.weight, number)
            self.computes[tile] -= 1
            if not self.computes[tile]:
                self.pools["input"].give(task.input, number)
                self.push(task._replace(kind="write", number=0, after=number))
        else:
            if not tiling.summed or task.place[2] == len(tiling.parts) - 1:
                self.pools["output"].give(task.output, number)
            self.writes[tile[:2]] -= 1
            if not self.writes[tile[:2]]:
                del self.writes[tile[:2]]
                self.open(task.frame, task.layer + 1)
