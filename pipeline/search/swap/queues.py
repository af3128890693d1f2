"""A sequential program over SRAM and a card, taken apart into tracks that run side by side.

The program is legal if its tasks run one after the other. Which of them may overlap follows from
the bytes that they touch: of two that share bytes, one of them writing, the later waits for the
earlier. So reads run ahead as far as their places are free. What the card does next – the next read
or the next write – is tried by list scheduling; the order that results is frozen.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from operator import le
from typing import Literal, NamedTuple

import numpy as np

from pipeline.schedules.swapped import Act, Job, Window

Queue = Literal["read", "compute", "write"]
QUEUES: tuple[Queue, ...] = ("read", "compute", "write")


class Task(NamedTuple):
    """``needs``: how many tasks of each queue must be done before it starts; ``act`` says what is
    done: of most schedules that are tried nobody asks."""

    us: float
    needs: dict[Queue, int]
    act: Callable[[], Act]


@dataclass
class Queues:
    """Tasks in the order in which they would run alone, in three queues.

    Attributes:
        grain: bytes that are told apart.
        windows: of what they do, by name.
    """

    sram_bytes: int
    grain: int
    windows: dict[str, Window] = field(default_factory=dict)
    tasks: dict[Queue, list[Task]] = field(default_factory=lambda: {name: [] for name in QUEUES})

    def __post_init__(self) -> None:
        size = -(-self.sram_bytes // self.grain)
        # of each place the last task of each queue that wrote it, that used it at all
        self.wrote, self.used = (
            {name: np.zeros(size, dtype=np.int64) for name in QUEUES} for _ in range(2)
        )
        self.holds = np.zeros(size, dtype=np.int64)  # which constants, 0: others
        self.contents: dict[tuple[str, int], int] = {}
        self.card: dict[tuple[str, int, int], int] = {}  # of each row there the task that wrote it

    def add(
        self, queue: Queue, us: float, act: Callable[[], Act], reads: Sequence[slice] = (),
        writes: Sequence[slice] = (), card: Sequence[tuple[str, int, int]] = (),
        same: tuple[str, int] | None = None,
    ) -> None:  # fmt: skip
        """A task that reads and writes SRAM, so many grains of it, and rows (tensor, frame, row)
        of feature maps on the card. Constants (``same``) that are there still are not read
        again."""
        content = self.contents.setdefault(same, len(self.contents) + 1) if same else 0
        if content and all((self.holds[part] == content).all() for part in writes):
            return
        number, needs = len(self.tasks[queue]) + 1, dict.fromkeys(QUEUES, 0)
        for numbers, names, parts in ((self.wrote, QUEUES[:2], reads), (self.used, QUEUES, writes)):
            for name, part in product(names, parts):
                if name != queue:
                    needs[name] = max(needs[name], int(numbers[name][part].max(initial=0)))
        if queue == "write":
            self.card |= dict.fromkeys(card, number)
        elif card:
            needs["write"] = max([needs["write"], *(self.card.get(row, 0) for row in card)])
        for part in reads:
            self.used[queue][part] = number
        for part in writes:
            self.used[queue][part] = self.wrote[queue][part] = number
            self.holds[part] = content
        self.tasks[queue].append(Task(us, needs, act))


class Scheduled(NamedTuple):
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
        left = at[name] < len(queues[name])
        return left and all(map(le, queues[name][at[name]].needs.values(), done.values()))

    def start(engine: str, *names: Queue) -> Queue | None:
        """Return the next task of the first of these queues that can start."""
        name = next(filter(able, names), None)
        if name:
            running[engine] = now + queues[name][at[name]].us, name
            at[name] += 1
        return name

    while sum(done.values()) < total:
        if "cpu" not in running:
            start("cpu", "compute")
        if "io" not in running and (dma or not running) and (name := start("io", *order)):
            io.append(name)
        engine = min(running, key=lambda key: running[key][0])
        now, ended = running.pop(engine)
        done[ended] += 1
    return Scheduled(now, tuple(io))


def frozen(program: Queues, io: Sequence[Queue]) -> tuple[list[Job], list[Job]]:
    """Return the jobs of the tracks that compute and move."""
    place: dict[Queue, list[int]] = {name: [0] for name in QUEUES}
    moving = list[Job]()
    for number, name in enumerate(io, 1):
        task = program.tasks[name][len(place[name]) - 1]
        place[name].append(number)
        moving.append(Job(task.needs["compute"], (task.act(),)))
    computing = [
        Job(max(place[name][task.needs[name]] for name in ("read", "write")), (task.act(),))
        for task in program.tasks["compute"]
    ]
    return computing, moving
