"""Segments as a program: what is read, computed and written, where, in which order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from math import prod
from typing import Literal

from pipeline.graph.graph import Graph
from pipeline.graph.tensor import Tensor
from pipeline.plan.rates import Rates
from pipeline.schedules.bounds import Box, Range, all_of
from pipeline.schedules.swapped import Act, Window
from pipeline.search.swap.layers import Source, TiledLayer, rows_of
from pipeline.search.swap.queues import Queues, Span
from pipeline.search.swap.segments import GRAIN, Rows, Segment, aligned, ring_bytes


@dataclass(frozen=True)
class Held:
    """A window whose first axis is a ring of ``rows``; a vector of activations is one row."""

    window: Window
    rows: int
    row_bytes: int

    def spans(self, rows: Rows, copy: int = 0) -> Iterator[Span]:
        window = self.window
        base = window.base_bytes + copy % window.copies * window.copy_bytes
        low, high = rows
        if high - low >= self.rows:
            yield base, base + self.rows * self.row_bytes
            return
        start, stop = low % self.rows, (high - 1) % self.rows + 1
        parts = [(start, stop)] if start < stop else [(start, self.rows), (0, stop)]
        for first, last in parts:
            yield base + first * self.row_bytes, base + last * self.row_bytes

    def box(self, rows: Rows, channels: Rows | None = None) -> Box:
        """Of a feature map: whole rows, or some channels of them; of weights: output channels."""
        shape = self.window.tensor.shape
        box = list(all_of(shape))
        if len(shape) > 1:
            box[0] = Range(rows[0], rows[1] - rows[0])
        if channels:
            box[-1] = Range(channels[0], channels[1] - channels[0])
        return tuple(box)


@dataclass
class Builder:
    """Adds segments to a program. Residents alternate between the two ends of SRAM, and what
    segments need besides between the sides of what is left: so a segment's weights can arrive
    while the one before still runs."""

    graph: Graph
    sram_bytes: int
    rates: Rates
    grain: int = GRAIN
    queues: Queues = field(init=False)
    windows: dict[str, Window] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.queues = Queues(self.sram_bytes, self.grain)

    def run(self, segments: Sequence[Segment], frames: Sequence[int], sram_bytes: int) -> None:
        """The segments one after the other for each frame, or once for those in a batch, in the
        first ``sram_bytes``."""
        places = zip(segments, layout(segments, sram_bytes, self.grain), strict=True)
        if segments[0].batch > 1:
            for segment, place in places:
                _Run(self, segment, place).frames(frames)
            return
        runs = [_Run(self, *each) for each in places]
        for run, after in pairwise(runs):
            run.after = after
        for frame in frames:
            for run in runs:
                run.frames([frame])


@dataclass(frozen=True)
class Layout:
    """Byte addresses of a segment's source and target, and of what it needs besides.

    Attributes:
        first, free: of the places for weight tiles the one that the first tile takes, and how many
            from there on the segment before has no use for.
    """

    source: int
    target: int
    inner: int
    first: int = 0
    free: int = 0


def layout(segments: Sequence[Segment], sram_bytes: int, grain: int) -> list[Layout]:
    result, low = list[Layout](), True
    end = sram_bytes // grain * grain
    for number, segment in enumerate(segments):
        if segment.source == "kept" and result:
            source, low = result[-1].target, not low
        else:
            low = number % 2 == 0
            source = 0 if low else end - segment.source_bytes
        target = end - segment.target_bytes if low else 0
        bottom = segment.source_bytes if low else segment.target_bytes
        top = target if low else source
        inner = bottom if number % 2 else top - segment.inner_bytes
        free = _free(segment, inner, segments[number - 1], result[-1]) if result else (0, 0)
        result.append(Layout(source, target, inner, *free))
    return result


def _free(segment: Segment, inner: int, before: Segment, place: Layout) -> tuple[int, int]:
    """The longest run of places for weight tiles that have no byte of the segment before, while it
    streams: the first of them, how many."""
    if segment.streamed < 0 or segment.batch > 1:
        return 0, 0
    base = inner + segment.inner_bytes - sum(
        segment.weight_bytes(n) for n in range(segment.streamed, len(segment.layers))
    )  # fmt: skip
    step = segment.weight_bytes(segment.streamed) // segment.copies
    spans = [(place.target, before.target_bytes), (place.inner, before.inner_bytes)]
    spans += [] if before.source_dies else [(place.source, before.source_bytes)]
    longest = first = run = 0
    for copy in range(segment.copies):
        low = base + copy * step
        free = all(low + step <= start or start + size <= low for start, size in spans)
        run = run + 1 if free else 0
        if run > longest:
            longest, first = run, copy + 1 - run
    return first, longest


class _Run:
    """One segment at its place."""

    def __init__(self, builder: Builder, segment: Segment, place: Layout) -> None:
        self.builder, self.segment = builder, segment
        self.rates, self.queues = builder.rates, builder.queues
        self.tensors = builder.graph.tensors
        self.place = place
        self.tile = place.first - 1
        self.after: _Run | None = None
        first, last = segment.outside[0], segment.layers[-1].target
        self.maps = {
            first.tensor: self.map(first.tensor, place.source, segment.source_rows),
            last: self.map(last, place.target, segment.target_rows),
        }
        base = place.inner
        for source, rows, channels in segment.between:
            self.maps[source.tensor] = self.map(source.tensor, base, rows, channels)
            base += ring_bytes(source, rows, channels, segment.grain)
        self.weights: list[Held | None] = []
        for n, layer in enumerate(segment.layers):
            self.weights.append(self.held_weights(n, layer, base) if layer.weight else None)
            base += segment.weight_bytes(n)

    def add(
        self, tensor: Tensor, base: int, sizes: Sequence[int], copies: int, step: int
    ) -> Window:
        # residents are one window, whichever segment speaks of it
        name = f"{tensor.name}@{base}.{sizes[0]}"
        window = Window(name, tensor, base, tuple(sizes), 8, copies, step)
        self.builder.windows[name] = window
        return window

    def map(self, name: str, base: int, rows: int, channels: int = 0) -> Held:
        """``channels``: so many of them; 0: all."""
        tensor, batch = self.tensors[name], self.segment.batch
        *image, depth = tensor.shape
        sizes = (*image, channels or depth)
        each = prod(sizes) // rows_of(tensor.shape)
        if len(image) == 2:
            sizes = (rows, *sizes[1:])
        step = aligned(rows * each, self.segment.grain)
        return Held(self.add(tensor, base, sizes, batch, step), rows, each)

    def held_weights(self, n: int, layer: TiledLayer, base: int) -> Held:
        tensor, segment = self.tensors[layer.weight], self.segment
        streamed = n == segment.streamed
        rows = min(segment.tile, layer.channels) if streamed else layer.channels
        copies, sizes = segment.copies if streamed else 1, (rows, *tensor.shape[1:])
        step = aligned(rows * layer.row_bytes, segment.grain)
        window = self.add(tensor, base, sizes, copies, step)
        return Held(window, rows, layer.row_bytes)

    # --- steps

    def frames(self, frames: Sequence[int]) -> None:
        segment = self.segment
        if segment.all_held:
            self.tile = self.place.first - 1  # every tile has its own place: it may be there still
        if segment.batch > 1:
            self.read_ahead(segment.layers[0])
        for place, turn in enumerate(segment.rings.turns):
            for source in segment.arrives:
                rows = segment.rings.arrivals[source.tensor][place]
                for number, frame in enumerate(frames):
                    self.arrive(source, rows, frame, number)
            for n, layer in enumerate(segment.layers):
                rows, needed = turn.computes[n], turn.reads[n]
                if rows[0] >= rows[1]:
                    continue
                if n == segment.streamed:
                    self.stream(n, layer, rows, needed, frames)
                elif layer not in segment.by_tile:
                    if layer.weight:
                        self.read_weights(n, (0, layer.channels), 0)
                    for number, frame in enumerate(frames):
                        self.compute(n, rows, needed, (0, layer.channels), 0, frame, number)
            if segment.target != "kept":
                for number, frame in enumerate(frames):
                    self.store(turn.computes[-1], frame, number)

    def arrive(self, source: Source, rows: Rows, frame: int, copy: int) -> None:
        if rows[0] >= rows[1]:
            return
        held = self.maps[source.tensor]
        load = partial(_moved, "load", held, copy, rows, frame)
        self.queues.read(
            self.rates.move_us((rows[1] - rows[0]) * held.row_bytes, False), load,
            held.spans(rows, copy), (source.tensor, frame, *rows),
        )  # fmt: skip

    def store(self, rows: Rows, frame: int, copy: int) -> None:
        layer = self.segment.layers[-1]
        held = self.maps[layer.target]
        if rows[0] >= rows[1]:
            return
        store = partial(_moved, "store", held, copy, rows, frame)
        self.queues.write(
            self.rates.move_us((rows[1] - rows[0]) * held.row_bytes, True), store,
            held.spans(rows, copy), (layer.target, frame, *rows), layer.shape[0],
        )  # fmt: skip

    def read_ahead(self, layer: TiledLayer) -> None:
        """As many tiles as have a place: before the frames, for which they would have to wait."""
        tile = self.segment.tile
        for number, low in enumerate(range(0, layer.channels, tile)[: self.segment.copies]):
            self.read_weights(0, (low, low + tile), number)

    def read_weights(self, n: int, channels: Rows, copy: int) -> None:
        held, layer = self.weights[n], self.segment.layers[n]
        assert held is not None
        size = min(channels[1], layer.channels) - channels[0]
        us = self.rates.move_us(size * layer.row_bytes, False)
        load = partial(_moved, "load", held, copy, channels, 0)
        self.queues.read(
            us, load, held.spans((0, held.rows), copy), same=(layer.weight, channels[0])
        )

    def stream(
        self, n: int, layer: TiledLayer, rows: Rows, needed: Sequence[Rows], frames: Sequence[int]
    ) -> None:
        segment = self.segment
        tile, (turn, *later) = segment.tile, segment.rings.turns
        by_tile = range(n + 1, n + 1 + len(segment.by_tile))
        lows = range(0, layer.channels, tile)
        for place, low in enumerate(lows):
            self.tile += 1
            self.read_weights(n, (low, low + tile), self.tile)
            for number, frame in enumerate(frames):
                self.compute(n, rows, needed, (low, low + tile), self.tile, frame, number)
            for m in by_tile:
                if segment.layers[m].weight:
                    self.read_weights(m, (0, layer.channels), 0)
                made, reads = turn.computes[m], turn.reads[m]
                self.compute(m, made, reads, (low, low + tile), 0, frames[0], 0)
            if self.after is not None and not later:
                self.after.begun(place, len(lows))

    def begun(self, number: int, of: int) -> None:
        """Read weight tiles into places that the segment before has no use for, while that makes
        tile ``number`` of ``of``: evenly, so that its own tiles don't wait for all of these."""
        segment, place = self.segment, self.place
        start = place.first if segment.all_held else self.tile + 1
        if not place.free or start % segment.copies != place.first:
            return
        layer, tile = segment.layers[segment.streamed], segment.tile
        tiles = min(place.free, -(-layer.channels // tile))
        for n in range(tiles * number // of, tiles * (number + 1) // of):
            self.read_weights(segment.streamed, (n * tile, (n + 1) * tile), start + n)

    def compute(
        self, n: int, rows: Rows, needed: Sequence[Rows], channels: Rows, tile: int, frame: int,
        copy: int,
    ) -> None:  # fmt: skip
        layer, weights = self.segment.layers[n], self.weights[n]
        target, depth = self.maps[layer.target], layer.channels
        spans = list[Span]()
        for source, reads in zip(layer.sources, needed, strict=True):
            if reads[0] < reads[1]:
                spans += self.maps[source.tensor].spans(reads, copy)
        if weights is not None:
            spans += weights.spans((0, weights.rows), tile)
        made = (rows[1] - rows[0]) / layer.shape[0]
        share = made * (min(channels[1], depth) - channels[0]) / depth
        make = partial(self.made, n, rows, channels, tile, frame, copy)
        self.queues.compute(
            self.rates.compute_us(layer.work * share), make, spans, target.spans(rows, copy)
        )

    def made(self, n: int, rows: Rows, channels: Rows, tile: int, frame: int, copy: int) -> Act:
        layer, weights = self.segment.layers[n], self.weights[n]
        target = self.maps[layer.target]
        given = [(self.maps[source.tensor].window.name, copy) for source in layer.sources]
        given += [(weights.window.name, tile)] if weights is not None else []
        box = target.box(rows, channels)
        return Act("make", target.window.name, copy, box, frame, layer.name, tuple(given))


def _moved(kind: Literal["load", "store"], held: Held, copy: int, rows: Rows, frame: int) -> Act:
    return Act(kind, held.window.name, copy, held.box(rows), frame)
