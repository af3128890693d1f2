"""Segments as a program: what is read, computed and written, where, in which order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pipeline.graph.graph import Graph
from pipeline.graph.tensor import Tensor
from pipeline.plan.rates import Rates
from pipeline.schedules.bounds import Box, Range, all_of
from pipeline.schedules.swapped import Act, Window
from pipeline.search.swap.layers import TiledLayer
from pipeline.search.swap.queues import Queues, Span
from pipeline.search.swap.segments import Rows, Segment, aligned, extent, row_bytes


@dataclass(frozen=True)
class Held:
    """A window whose first axis is a ring of ``rows``; a vector is one row."""

    window: Window
    rows: int
    row_bytes: int
    vector: bool = False

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
        if not self.vector:
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
    queues: Queues = field(init=False)
    windows: dict[str, Window] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.queues = Queues(self.sram_bytes)

    def run(self, segments: Sequence[Segment], frames: Sequence[int], sram_bytes: int) -> None:
        """The segments one after the other for each frame, or once for those in a batch, in the
        first ``sram_bytes``."""
        places = zip(segments, layout(segments, sram_bytes), strict=True)
        if segments[0].batch > 1:
            for segment, place in places:
                _Run(self, segment, place).frames(frames)
            return
        runs = [_Run(self, *each) for each in places]
        for frame in frames:
            for run in runs:
                run.frames([frame])


@dataclass(frozen=True)
class Layout:
    """Byte addresses of a segment's source and target, and of what it needs besides."""

    source: int
    target: int
    inner: int


def layout(segments: Sequence[Segment], sram_bytes: int) -> list[Layout]:
    result, low = list[Layout](), True
    end = sram_bytes // 16 * 16
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
        result.append(Layout(source, target, inner))
    return result


class _Run:
    """One segment at its place."""

    def __init__(self, builder: Builder, segment: Segment, place: Layout) -> None:
        self.builder, self.segment = builder, segment
        self.rates, self.queues = builder.rates, builder.queues
        self.tensors = builder.graph.tensors
        self.tile = -1
        layers = segment.layers
        self.maps = [self.map(layers[0], True, place.source, segment.source_rows)]
        base = place.inner
        for n in range(1, len(layers)):
            self.maps.append(self.map(layers[n], True, base, segment.rings.sources[n]))
            base += segment.middle_bytes(n)
        self.maps.append(self.map(layers[-1], False, place.target, segment.target_rows))
        self.weights: list[Held | None] = []
        for n, layer in enumerate(layers):
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

    def map(self, layer: TiledLayer, source: bool, base: int, rows: int) -> Held:
        tensor = self.tensors[layer.source if source else layer.target]
        each, batch = row_bytes(layer, source), self.segment.batch
        vector = extent(layer, source) == 1
        if vector or len(tensor.shape) == 1:
            sizes, rows = tensor.shape, 1
        else:
            sizes = (rows, *tensor.shape[1:])
        window = self.add(tensor, base, sizes, batch, aligned(rows * each))
        return Held(window, rows, each, vector)

    def held_weights(self, n: int, layer: TiledLayer, base: int) -> Held:
        tensor, segment = self.tensors[layer.weight], self.segment
        streamed = n == segment.streamed
        rows = min(segment.tile, layer.channels) if streamed else layer.channels
        copies, sizes = segment.copies if streamed else 1, (rows, *tensor.shape[1:])
        window = self.add(tensor, base, sizes, copies, aligned(rows * layer.row_bytes))
        return Held(window, rows, layer.row_bytes)

    # --- steps

    def frames(self, frames: Sequence[int]) -> None:
        segment, arrived = self.segment, [0] * len(frames)
        if segment.all_held:
            self.tile = -1  # every tile has a place of its own: it may be there still
        if segment.batch > 1:
            self.read_ahead(segment.layers[0])
        for turn in segment.rings.turns:
            if segment.source == "stored":
                for number, frame in enumerate(frames):
                    arrived[number] = self.arrive(turn.reads[0], arrived[number], frame, number)
            for n, layer in enumerate(segment.layers):
                rows, reads = turn.computes[n], turn.reads[n]
                if rows[0] >= rows[1]:
                    continue
                if n == segment.streamed:
                    self.stream(n, layer, rows, reads, frames)
                else:
                    if layer.weight:
                        self.read_weights(n, (0, layer.channels), 0)
                    for number, frame in enumerate(frames):
                        self.compute(n, rows, reads, (0, layer.channels), 0, frame, number)
            if segment.target == "stored":
                for number, frame in enumerate(frames):
                    self.store(turn.computes[-1], frame, number)

    def arrive(self, rows: Rows, arrived: int, frame: int, copy: int) -> int:
        held, layer = self.maps[0], self.segment.layers[0]
        if layer.windows is None:
            rows = (0, 1)
        low, high = max(rows[0], arrived), rows[1]
        if low >= high:
            return arrived
        load = Act("load", held.window.name, copy, held.box((low, high)), frame)
        self.queues.read(
            self.rates.move_us((high - low) * held.row_bytes, False), load,
            held.spans((low, high), copy),
            (layer.source, frame, low, high if layer.windows else layer.source_bytes),
        )  # fmt: skip
        return high

    def store(self, rows: Rows, frame: int, copy: int) -> None:
        held, layer = self.maps[-1], self.segment.layers[-1]
        if rows[0] >= rows[1]:
            return
        store = Act("store", held.window.name, copy, held.box(rows), frame)
        self.queues.write(
            self.rates.move_us((rows[1] - rows[0]) * held.row_bytes, True), store,
            held.spans(rows, copy), (layer.target, frame, *rows), extent(layer, False),
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
        load = Act("load", held.window.name, copy, held.box(channels))
        spans = list(held.spans((0, held.rows), copy))
        self.queues.read(us, load, spans, same=(layer.weight, channels[0]))

    def stream(
        self, n: int, layer: TiledLayer, rows: Rows, reads: Rows, frames: Sequence[int]
    ) -> None:
        tile = self.segment.tile
        for low in range(0, layer.channels, tile):
            self.tile += 1
            self.read_weights(n, (low, low + tile), self.tile)
            for number, frame in enumerate(frames):
                self.compute(n, rows, reads, (low, low + tile), self.tile, frame, number)

    def compute(
        self, n: int, rows: Rows, reads: Rows, channels: Rows, tile: int, frame: int, copy: int
    ) -> None:
        layer, source, target = self.segment.layers[n], self.maps[n], self.maps[n + 1]
        weights, depth = self.weights[n], layer.channels
        given = [(source.window.name, copy)]
        spans = list(source.spans(reads, copy))
        if weights is not None:
            given.append((weights.window.name, tile))
            spans += weights.spans((0, weights.rows), tile)
        box = target.box(rows, channels)
        make = Act("make", target.window.name, copy, box, frame, layer.name, tuple(given))
        made = (rows[1] - rows[0]) / extent(layer, False)
        share = made * (min(channels[1], depth) - channels[0]) / depth
        self.queues.compute(
            self.rates.compute_us(layer.work * share), make, spans, target.spans(rows, copy)
        )
