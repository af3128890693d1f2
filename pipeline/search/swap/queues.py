"""A sequential program over SRAM and a card, taken apart into tracks that run side by side.

The program is legal if its tasks run one after the other. Which of them may overlap follows from
the bytes that they touch: of two that share bytes, one of them writing, the later waits for the
earlier. So reads run ahead as far as their places are free. What the card does next – the next read
or the next write – is tried by list scheduling; the order that results is frozen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from pipeline.graph.tensor import IntArray
from pipeline.schedules.swapped import Act, Job

Queue = Literal["read", "compute", "write"]
QUEUES: tuple[Queue, ...] = ("read", "compute", "write")
Span = tuple[int, int]
"""Bytes of SRAM: from, to."""


class Needs(NamedTuple):
    """How many tasks of each queue must be done before a task starts."""

    read: int = 0
    compute: int = 0
    write: int = 0


class Queued(NamedTuple):
    """``act`` says what is done: of most schedules that are tried nobody asks."""

    us: float
    needs: Needs
    act: Callable[[], Act]


@dataclass
class Queues:
    """Tasks in the order in which they would run alone, in three queues.

    Attributes:
        grain: bytes that are told apart.
    """

    sram_bytes: int
    grain: int
    tasks: dict[Queue, list[Queued]] = field(default_factory=lambda: {name: [] for name in QUEUES})

    def __post_init__(self) -> None:
        size = -(-self.sram_bytes // self.grain)
        self.loaded = np.zeros(size, dtype=np.int64)  # by the queue read
        self.used = np.zeros(size, dtype=np.int64)  # read or written by computing
        self.made = np.zeros(size, dtype=np.int64)  # written by computing
        self.saved = np.zeros(size, dtype=np.int64)  # read by the queue write
        self.holds = np.zeros(size, dtype=np.int64)  # which constants, 0: others
        self.contents: dict[tuple[str, int], int] = {}
        self.card: dict[tuple[str, int], IntArray] = {}

    def read(self, us: float, act: Callable[[], Act], into: Iterable[Span],
             rows: tuple[str, int, int, int] | None = None,
             same: tuple[str, int] | None = None) -> None:  # fmt: skip
        """From the card; ``rows`` (tensor, frame, from, to) are of a feature map. Constants that
        are there still (``same``) are not read again."""
        parts = list(self._parts(into))
        content = self.contents.setdefault(same, len(self.contents) + 1) if same else 0
        if content and all((self.holds[part] == content).all() for part in parts):
            return
        number, compute, write = len(self.tasks["read"]) + 1, 0, 0
        if rows and rows[:2] in self.card:
            write = int(self.card[rows[:2]][rows[2] : rows[3]].max(initial=0))
        for part in parts:
            compute = max(compute, int(self.used[part].max(initial=0)))
            write = max(write, int(self.saved[part].max(initial=0)))
            self.loaded[part] = number
            self.holds[part] = content
        self.tasks["read"].append(Queued(us, Needs(0, compute, write), act))

    def compute(
        self, us: float, act: Callable[[], Act], reads: Iterable[Span], writes: Iterable[Span]
    ) -> None:
        number, read, write = len(self.tasks["compute"]) + 1, 0, 0
        for part in self._parts(reads):
            read = max(read, int(self.loaded[part].max(initial=0)))
            self.used[part] = number
        for part in self._parts(writes):
            read = max(read, int(self.loaded[part].max(initial=0)))
            write = max(write, int(self.saved[part].max(initial=0)))
            self.used[part] = self.made[part] = number
            self.holds[part] = 0
        self.tasks["compute"].append(Queued(us, Needs(read, 0, write), act))

    def write(self, us: float, act: Callable[[], Act], out: Iterable[Span],
              rows: tuple[str, int, int, int], extent: int) -> None:  # fmt: skip
        """To rows of a feature map of ``extent`` rows."""
        number, compute, read = len(self.tasks["write"]) + 1, 0, 0
        for part in self._parts(out):
            compute = max(compute, int(self.made[part].max(initial=0)))
            read = max(read, int(self.loaded[part].max(initial=0)))
            self.saved[part] = number
        known = self.card.setdefault(rows[:2], np.zeros(extent, dtype=np.int64))
        known[rows[2] : rows[3]] = number
        self.tasks["write"].append(Queued(us, Needs(read, compute, 0), act))

    def _parts(self, spans: Iterable[Span]) -> Iterator[slice]:
        for low, high in spans:
            yield slice(low // self.grain, -(-high // self.grain))


@dataclass(frozen=True)
class Scheduled:
    """``io``: the card's queues in the order of their turns."""

    makespan_us: float
    io: tuple[Queue, ...]


def schedule(program: Queues, writes_first: bool, dma: bool = True) -> Scheduled:
    """List scheduling: of a read and a write that can start, the preferred kind goes first; without
    ``dma`` nothing does while something else runs."""
    queues = program.tasks
    at, done = dict.fromkeys(QUEUES, 0), dict.fromkeys(QUEUES, 0)
    now, running, io = 0.0, dict[str, tuple[float, Queue]](), list[Queue]()
    order: tuple[Queue, ...] = ("write", "read") if writes_first else ("read", "write")
    total = sum(map(len, queues.values()))

    def able(name: Queue) -> bool:
        if at[name] == len(queues[name]):
            return False
        needs = queues[name][at[name]].needs
        return (
            needs.read <= done["read"]
            and needs.compute <= done["compute"]
            and needs.write <= done["write"]
        )

    def start(engine: str, name: Queue) -> None:
        running[engine] = now + queues[name][at[name]].us, name
        at[name] += 1

    while sum(done.values()) < total:
        if "cpu" not in running and able("compute"):
            start("cpu", "compute")
        if "io" not in running and (dma or not running):
            for name in order:
                if able(name):
                    start("io", name)
                    io.append(name)
                    break
        engine = min(running, key=lambda key: running[key][0])
        now, name = running.pop(engine)
        done[name] += 1
    return Scheduled(now, tuple(io))


def frozen(program: Queues, io: Sequence[Queue]) -> tuple[list[Job], list[Job]]:
    """The jobs of the tracks that compute and move."""
    queues, at = program.tasks, dict.fromkeys(QUEUES, 0)
    place: dict[Queue, list[int]] = {name: [0] for name in QUEUES}
    moving = list[Job]()
    for number, name in enumerate(io, 1):
        task = queues[name][at[name]]
        at[name] += 1
        place[name].append(number)
        moving.append(Job(task.needs.compute, (task.act(),)))
    computing = [
        Job(max(place["read"][task.needs.read], place["write"][task.needs.write]), (task.act(),))
        for task in queues["compute"]
    ]
    return computing, moving
