"""SwapNN's scheduler as a planner: Algorithm 1 decides the order, the plan freezes it.

Each task ends with a signal of its track and waits, before it starts, for the tasks of the other
track that it depends on: the counters alone make the plan right, whatever the times become.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from math import prod
from typing import NamedTuple

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import Box
from pipeline.plan.rates import Rates
from pipeline.schedules.lower import Notes
from pipeline.schedules.swapped import Act, Job, Kind, Swapped, Window
from pipeline.search.swap.algorithm1 import Algorithm1, Task
from pipeline.search.swap.tiling import Tiling, longest, tiling
from pipeline.search.view.tiles import Rows, TiledLayer, homes


class Pools(NamedTuple):
    """Numbers of buffers; they lie in memory in this order."""

    buffer_bytes: int
    input: int
    weight: int
    output: int


def pools(sram_bytes: int, buffer_bytes: int, shares: tuple[int, int, int]) -> Pools:
    """``shares`` of all buffers for input, weight and output tiles; of the fewest that are enough
    where SRAM is too small even for these, so that there is a plan that says what it needs.

    Raises:
        ThimbleError: for a pool without a share.
    """
    number, total = sram_bytes // buffer_bytes, sum(shares)
    if min(shares) < 1:
        raise ThimbleError(f"strategy.pools={list(shares)}: every pool needs buffers; try [1,2,1]")
    number = max(number, *(-(-total // share) for share in shares))
    return Pools(buffer_bytes, *(number * share // total for share in shares))


class Piece(NamedTuple):
    """Weights of a tile in one window: ``box`` of them, for output channels ``made``; ``partial``:
    only a part of what these need, so that sums are kept."""

    window: Window
    made: Rows
    box: Box
    partial: bool


def volume(box: Box) -> int:
    return prod(max(0, stop - start) for start, stop in box)


class Emitter:
    """One layer: its windows, and what its tasks move and compute.

    Raises:
        ThimbleError: where an input tile, or the sums of an output tile, need more than a buffer.
    """

    def __init__(self, tiling: Tiling, graph: Graph, pools: Pools) -> None:
        layer = self.layer = tiling.layer
        self.tiling, self.graph, self.pools = tiling, graph, pools
        self.windows: dict[str, Window] = {}
        self.pieces = cache(lambda *tile: tuple(self._pieces(*tile)))
        source = layer.sources[0]
        image = len(graph.tensors[layer.target].shape) == 3
        self.axes = slice(0 if image else 2, None)  # a vector has channels only
        room, inputs, weights, outputs = pools
        depth = longest(tiling.parts)
        held = [longest(tiling.rows), longest(tiling.columns)]
        channels = depth if layer.channelwise else layer.channels
        if (needed := prod(tiling.window) * depth) > room:
            raise ThimbleError(
                f"{layer.name}: {needed} B of {source.tensor} are read at once; "
                f"strategy.buffer_bytes={room} is too small: use strategy.scheduler=best"
            )
        self.add("in", source.tensor, 0, (*tiling.window, depth), inputs)
        base = (inputs + weights) * room
        self.add("out", layer.target, base, (*held, channels)[self.axes], outputs)
        if number := tiling.sums:
            above = 0 if tiling.summed else -(-prod((*held, channels)) // 4) * 4
            if above + 4 * number > room:
                raise ThimbleError(
                    f"{layer.name}: {4 * number} B of sums don't fit beside an output tile; try "
                    f"another strategy.buffer_bytes than {room}"
                )
            most = longest(tile.shared for tile in tiling.weight_tiles)
            sizes = (*held, channels if tiling.summed else most)[self.axes]
            self.add("sums", layer.target, base + above, sizes, outputs, bits=32)
        for kind in dict.fromkeys(tile.kind for tile in tiling.weight_tiles):
            tiles = [tile for tile in tiling.weight_tiles if tile.kind == kind]
            _, *inner, last = graph.tensors[layer.weight].shape
            rows, high, wide = map(longest, zip(*tiles, strict=True))
            base, whole = inputs * room, (rows, *inner, depth if tiling.summed else last)
            for part, sizes in (("rows", whole), ("shared", (high, *inner, wide))):
                if all(sizes):
                    self.add(part + kind, layer.weight, base, sizes, weights)
                base += prod(sizes)

    def add(
        self, kind: str, tensor: str, base: int, sizes: Sequence[int], copies: int, bits: int = 8
    ) -> None:
        name, room = self.graph.beside(self.layer.name, kind), self.pools.buffer_bytes
        place = tuple(sizes), bits, copies, room
        self.windows[kind] = Window(name, self.graph.tensors[tensor], base, *place)

    # --- boxes

    def made(self, task: Task, channels: Rows) -> Box:
        """Return the ranges of the target that a task makes."""
        row, column, _ = task.place
        made: Box = (self.tiling.rows[row], self.tiling.columns[column], channels)
        return made[self.axes]

    def channels(self, task: Task, rows: Rows | None = None) -> Rows:
        """Return those of output channels ``rows``, or of all, that the tile makes."""
        rows = rows or (0, self.layer.channels)
        if not self.layer.channelwise:
            return rows
        low, high = self.tiling.parts[task.place[2]]
        return max(low, rows[0]), max(low, rows[0], min(high, rows[1]))

    def _pieces(self, number: int, part: int) -> Iterator[Piece]:
        """Yield what a weight tile has whole (or the input part's share), and what it shares."""
        tile, summed = self.tiling.weight_tiles[number], self.tiling.summed
        _, *inner, last = self.graph.tensors[self.layer.weight].shape
        start, end = some = self.tiling.parts[part] if summed else (0, last)
        shared = min(start + tile.columns[0], end), min(start + tile.columns[1], end)
        kinds = ("rows", tile.rows, some, summed), ("shared", tile.shared, shared, True)
        for kind, made, some, in_part in kinds:
            if volume((made, some)):
                box = (made, *((0, extent) for extent in inner), some)
                yield Piece(self.windows[kind + tile.kind], made, box, in_part)

    # --- tasks

    def last(self, task: Task) -> bool:
        """The output tile is complete after this input tile."""
        return not self.tiling.summed or task.place[2] == len(self.tiling.parts) - 1

    def moves(self, task: Task) -> Iterator[tuple[Window, int, Box]]:
        """Yield what an IO task moves: the window, its copy, and the ranges."""
        if task.kind == "input":
            yield self.windows["in"], task.input, self.tiling.read(*task.place)
        elif task.kind == "weight":
            pieces = self.pieces(task.number, task.place[2])
            yield from ((each.window, task.weight, each.box) for each in pieces)
        elif self.last(task):
            yield self.windows["out"], task.output, self.made(task, self.channels(task))

    def moving(self, task: Task) -> Iterator[Act]:
        kind: Kind = "store" if task.kind == "write" else "load"
        for held, copy, box in self.moves(task):
            yield Act(kind, held.name, copy, held.box(box), task.frame)

    def computing(self, task: Task) -> Iterator[Act]:
        """Yield the acts of a compute task. Where input tiles are parts of the source's channels,
        all of it is in sums, from the first part to the last."""
        tiles, summed, act = self.tiling.weight_tiles, self.tiling.summed, partial(self.act, task)
        every, tile = self.channels(task), tiles[task.number] if tiles else None
        if tile is None:
            yield act("make", every)
            return
        if summed and task.place[2] == task.number == 0:
            yield act("clear", every)
        for piece in self.pieces(task.number, task.place[2]):
            if not volume((made := self.channels(task, piece.made),)):
                continue
            alone = piece.partial and not summed
            if alone and not tile.columns[0]:
                yield act("clear", made)
            yield act("add" if piece.partial else "make", made, piece)
            if alone and tile.columns[1] == self.tiling.depth:
                yield act("finish", made)
        if summed and self.last(task) and task.number == len(tiles) - 1:
            yield act("finish", every)

    def act(self, task: Task, kind: Kind, made: Rows, piece: Piece | None = None) -> Act:
        held = self.windows["sums" if kind in ("clear", "add") else "out"]
        read, some = {"make": "in", "add": "in", "finish": "sums"}.get(kind), None
        copy = task.output if kind == "finish" else task.input
        given = [(self.windows[read].name, copy)] if read else []
        if piece:
            given.append((piece.window.name, task.weight))
            some = piece.window.box(piece.box)[-1] if piece.partial else None
        box, op = held.box(self.made(task, made)), self.layer.name
        return Act(kind, held.name, task.output, box, task.frame, op, tuple(given), some=some)


def schedule(
    graph: Graph, chain: Sequence[TiledLayer], sizes: Pools, frames: int, rates: Rates
) -> tuple[Swapped, Notes]:
    """
    Raises:
        ThimbleError: as ``Tiling``, ``Emitter`` and ``Algorithm1`` do.
    """
    tilings = [tiling(layer, sizes.buffer_bytes) for layer in chain]
    emitters = [Emitter(each, graph, sizes) for each in tilings]

    def us(task: Task) -> float:
        """Count as the paper does: all compute tasks of a layer take the same time."""
        if task.kind == "compute":
            cut = tilings[task.layer]
            tiles = len(cut.rows) * len(cut.columns) * len(cut.parts)
            return rates.compute_us(cut.layer.work / (tiles * max(1, len(cut.weight_tiles))))
        size = sum(volume(box) for _, _, box in emitters[task.layer].moves(task))
        return rates.move_us(size, task.kind == "write")

    def jobs(tasks: list[Task], acts: Callable[[Emitter, Task], Iterator[Act]]) -> Iterator[Job]:
        return (Job(each.after, tuple(acts(emitters[each.layer], each))) for each in tasks)

    run = Algorithm1(tilings, frames, sizes[1:], us)
    expected_us = run.run()
    io, cpu = run.orders["io"], run.orders["cpu"]
    tracks = partial(jobs, cpu, Emitter.computing), partial(jobs, io, Emitter.moving)
    windows = tuple(each for emitter in emitters for each in emitter.windows.values())
    notes: Notes = (
        ("scheduler", "swapnn"),
        ("buffer_bytes", sizes.buffer_bytes),
        ("io_tasks", len(io)),
        ("compute_tasks", len(cpu)),
        ("expected_makespan_us", expected_us),
    )
    sram_bytes = sizes.buffer_bytes * sum(sizes[1:])
    return Swapped(*homes(chain), windows, *tracks, sram_bytes), notes
