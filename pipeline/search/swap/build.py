"""Segments as a program: what is read, computed and written, where, in which order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Literal, NamedTuple

from pipeline.graph.graph import Graph
from pipeline.plan.rates import Rates
from pipeline.schedules.bounds import Range, all_of
from pipeline.schedules.swapped import Act, Kind, Window
from pipeline.search.swap.queues import Queues, Span
from pipeline.search.swap.segments import GRAIN, Ring, Segment, Turn, aligned
from pipeline.search.view.tiles import Rows


class Held(NamedTuple):
    """A window whose first axis is a ring of ``rows``; a vector of activations is one row."""

    window: Window
    rows: int
    row_bytes: int

    def spans(self, rows: Rows, copy: int = 0) -> Iterator[Span]:
        window, (low, high) = self.window, rows
        base = window.base_bytes + copy % window.copies * window.copy_bytes
        start, stop = low % self.rows, (high - 1) % self.rows + 1
        parts = [(start, stop)] if start < stop else [(start, self.rows), (0, stop)]
        if high - low >= self.rows:
            parts = [(0, self.rows)]
        for first, last in parts:
            yield base + first * self.row_bytes, base + last * self.row_bytes

    def act(
        self, kind: Kind, rows: Rows, frame: int, copy: int, channels: Rows | None = None,
        op: str = "", given: tuple[tuple[str, int], ...] = (),
    ) -> Act:  # fmt: skip
        """Of a feature map: whole rows, or some channels of them; of weights: output channels."""
        box = list(all_of(self.window.tensor.shape))
        if len(box) > 1:
            box[0] = Range(rows[0], rows[1] - rows[0])
        if channels:
            box[-1] = Range(channels[0], channels[1] - channels[0])
        return Act(kind, self.window.name, copy, tuple(box), frame, op, given)


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
        places = layout(segments, sram_bytes, self.grain)
        runs = [_Run(self, *each) for each in zip(segments, places, strict=True)]
        if segments[0].batch > 1:
            for run in runs:
                run.frames(frames)
            return
        for run, after in pairwise(runs):
            run.after = after
        for frame in frames:
            for run in runs:
                run.frames([frame])


class Layout(NamedTuple):
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
        ends = segment.source_ring, segment.target_ring
        source_bytes, target_bytes = map(segment.ring_bytes, ends)
        if segment.source == "kept" and result:
            source, low = result[-1].target, not low
        else:
            low = number % 2 == 0
            source = 0 if low else end - source_bytes
        target = end - target_bytes if low else 0
        bottom, top = (source_bytes, target) if low else (target_bytes, source)
        inner = bottom if number % 2 else top - segment.inner_bytes
        free = _free(segment, inner, segments[number - 1], result[-1]) if result else (0, 0)
        result.append(Layout(source, target, inner, *free))
    return result


def _free(segment: Segment, inner: int, before: Segment, place: Layout) -> tuple[int, int]:
    """The longest run of places for weight tiles that have no byte of the segment before, while it
    streams: the first of them, how many."""
    if segment.streamed < 0 or segment.batch > 1:
        return 0, 0
    sizes = [segment.weight_bytes(n) for n in range(segment.streamed, len(segment.layers))]
    base, step = inner + segment.inner_bytes - sum(sizes), sizes[0] // segment.copies
    spans = [(place.inner, before.inner_bytes)]
    spans.append((place.target, before.ring_bytes(before.target_ring)))
    if not before.source_dies:
        spans.append((place.source, before.ring_bytes(before.source_ring)))
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
        self.builder, self.segment, self.place = builder, segment, place
        self.rates, self.queues = builder.rates, builder.queues
        self.tile = place.first - 1
        self.after: _Run | None = None
        ends = (segment.source_ring, place.source), (segment.target_ring, place.target)
        self.maps = {ring.tensor: self.hold_map(ring, base) for ring, base in ends}
        base = place.inner
        for ring in segment.between:
            self.maps[ring.tensor] = self.hold_map(ring, base)
            base += segment.ring_bytes(ring)
        self.weights = list[Held | None]()
        for n, layer in enumerate(segment.layers):
            rows, copies, held = layer.channels, 1, None
            if n == segment.streamed:
                rows, copies = min(segment.tile, rows), segment.copies
            if layer.weight:
                sizes = (rows, *builder.graph.tensors[layer.weight].shape[1:])
                held = self.hold(layer.weight, base, sizes, rows, layer.row_bytes, copies)
            self.weights.append(held)
            base += segment.weight_bytes(n)

    def hold(
        self, tensor: str, base: int, sizes: tuple[int, ...], rows: int, row_bytes: int, copies: int
    ) -> Held:
        # residents are one window, whichever segment speaks of it
        name, step = f"{tensor}@{base}.{sizes[0]}", aligned(rows * row_bytes, self.segment.grain)
        window = Window(name, self.builder.graph.tensors[tensor], base, sizes, 8, copies, step)
        self.builder.windows[name] = window
        return Held(window, rows, row_bytes)

    def hold_map(self, ring: Ring, base: int) -> Held:
        *image, _ = self.builder.graph.tensors[ring.tensor].shape
        if len(image) == 2:
            image[0] = ring.rows
        sizes = (*image, ring.channels)
        return self.hold(ring.tensor, base, sizes, ring.rows, ring.row_bytes, self.segment.batch)

    # --- steps

    def frames(self, frames: Sequence[int]) -> None:
        segment = self.segment
        if segment.all_held:
            self.tile = self.place.first - 1  # every tile has its own place: it may be there still
        if segment.batch > 1:  # before the frames, for which they would have to wait
            for number in range(min(segment.copies, segment.tiles)):
                self.read_weights(0, number, number)
        for at, turn in enumerate(segment.rings.turns):
            for source in segment.arrives:
                for copy, frame in enumerate(frames):
                    rows = segment.rings.arrivals[source.tensor][at]
                    self.move("load", source.tensor, rows, frame, copy)
            for n, layer in enumerate(segment.layers):
                if turn.computes[n][0] >= turn.computes[n][1] or layer in segment.by_tile:
                    continue
                if n == segment.streamed:
                    self.stream(n, turn, frames)
                else:
                    self.read_weights(n)
                    for copy, frame in enumerate(frames):
                        self.compute(n, turn, (0, layer.channels), 0, frame, copy)
            if segment.target != "kept":
                for copy, frame in enumerate(frames):
                    self.move("store", segment.target_ring.tensor, turn.computes[-1], frame, copy)

    def move(
        self, kind: Literal["load", "store"], tensor: str, rows: Rows, frame: int, copy: int
    ) -> None:
        if rows[0] >= rows[1]:
            return
        held, spans = self.maps[tensor], list(self.maps[tensor].spans(rows, copy))
        us = self.rates.move_us((rows[1] - rows[0]) * held.row_bytes, kind == "store")
        act = partial(held.act, kind, rows, frame, copy)
        card = [(tensor, frame, row) for row in range(*rows)]
        if kind == "load":
            self.queues.add("read", us, act, writes=spans, card=card)
        else:
            self.queues.add("write", us, act, reads=spans, card=card)

    def read_weights(self, n: int, number: int = 0, copy: int = 0) -> None:
        """Tile ``number`` of a layer's weights, or all of them."""
        held, layer, segment = self.weights[n], self.segment.layers[n], self.segment
        if held is None:
            return
        tile = segment.tile if n == segment.streamed else layer.channels
        rows = number * tile, (number + 1) * tile
        us = self.rates.move_us((min(rows[1], layer.channels) - rows[0]) * layer.row_bytes, False)
        act, same = partial(held.act, "load", rows, 0, copy), (layer.weight, rows[0])
        self.queues.add("read", us, act, writes=held.spans((0, held.rows), copy), same=same)

    def stream(self, n: int, turn: Turn, frames: Sequence[int]) -> None:
        segment, tile = self.segment, self.segment.tile
        for number in range(segment.tiles):
            self.tile += 1
            channels = number * tile, (number + 1) * tile
            self.read_weights(n, number, self.tile)
            for copy, frame in enumerate(frames):
                self.compute(n, turn, channels, self.tile, frame, copy)
            for m in range(n + 1, n + 1 + len(segment.by_tile)):
                self.read_weights(m)
                self.compute(m, turn, channels, 0, frames[0], 0)
            if self.after is not None and len(segment.rings.turns) == 1:
                self.after.begun(number, segment.tiles)

    def begun(self, number: int, of: int) -> None:
        """Read weight tiles into places that the segment before has no use for, while that makes
        tile ``number`` of ``of``: evenly, so that its own tiles don't wait for all of these."""
        segment, place = self.segment, self.place
        start = place.first if segment.all_held else self.tile + 1
        if place.free and start % segment.copies == place.first:
            tiles = min(place.free, segment.tiles)
            for n in range(tiles * number // of, tiles * (number + 1) // of):
                self.read_weights(segment.streamed, n, start + n)

    def compute(self, n: int, turn: Turn, channels: Rows, tile: int, frame: int, copy: int) -> None:
        layer, weights, rows = self.segment.layers[n], self.weights[n], turn.computes[n]
        spans, depth = list[Span](), layer.channels
        for source, reads in zip(layer.sources, turn.reads[n], strict=True):
            if reads[0] < reads[1]:
                spans += self.maps[source.tensor].spans(reads, copy)
        if weights is not None:
            spans += weights.spans((0, weights.rows), tile)
        made = (rows[1] - rows[0]) / layer.rows
        share = made * (min(channels[1], depth) - channels[0]) / depth
        self.queues.add(
            "compute", self.rates.compute_us(layer.work * share),
            partial(self.made, n, rows, channels, tile, frame, copy),
            spans, self.maps[layer.target].spans(rows, copy),
        )  # fmt: skip

    def made(self, n: int, rows: Rows, channels: Rows, tile: int, frame: int, copy: int) -> Act:
        layer, weights = self.segment.layers[n], self.weights[n]
        given = [(self.maps[source.tensor].window.name, copy) for source in layer.sources]
        given += [(weights.window.name, tile)] if weights is not None else []
        target = self.maps[layer.target]
        return target.act("make", rows, frame, copy, channels, layer.name, tuple(given))
