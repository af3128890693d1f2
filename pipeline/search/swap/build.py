"""Segments as a program: what is read, computed and written, where, in which order."""

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Literal, NamedTuple

from pipeline.graph.graph import Graph
from pipeline.plan.rates import Rates
from pipeline.schedules.bounds import Range, all_of
from pipeline.schedules.swapped import Act, Kind, Window
from pipeline.search.swap.queues import Queues
from pipeline.search.swap.segments import Ring, Segment, Turn
from pipeline.search.view.tiles import Rows


def act(
    kind: Kind, window: Window, copy: int, rows: Rows, frame: int, channels: Rows | None = None,
    op: str = "", given: tuple[tuple[str, int], ...] = (),
) -> Act:  # fmt: skip
    """Of a feature map: whole rows, or some channels of them; of weights: output channels."""
    box = list(all_of(window.tensor.shape))
    if len(box) > 1:
        box[0] = Range(rows[0], rows[1] - rows[0])
    if channels:
        box[-1] = Range(channels[0], channels[1] - channels[0])
    return Act(kind, window.name, copy, tuple(box), frame, op, given)


def add(
    queues: Queues, graph: Graph, rates: Rates, segments: Sequence[Segment],
    frames: Sequence[int], sram_bytes: int,
) -> None:  # fmt: skip
    """Add the segments to a program one after the other for each frame, or once for those in a
    batch, in the first ``sram_bytes``. Residents alternate between the two ends of SRAM, and what
    segments need besides between the sides of what is left: so a segment's weights can arrive
    while the one before still runs."""
    places = zip(segments, layout(segments, sram_bytes, queues.grain), strict=True)
    runs = [_Run(queues, graph, rates, *each) for each in places]
    for together in [frames] if segments[0].batch > 1 else [[frame] for frame in frames]:
        for run in runs:
            run.frames(together)


class Layout(NamedTuple):
    """Byte addresses of a segment's source and target, and of what it needs besides."""

    source: int
    target: int
    inner: int


def layout(segments: Sequence[Segment], sram_bytes: int, grain: int) -> list[Layout]:
    result, low = list[Layout](), True
    end = sram_bytes // grain * grain
    for number, segment in enumerate(segments):
        source_bytes, target_bytes = segment.source_ring.bytes, segment.target_ring.bytes
        if segment.source == "kept" and result:
            source, low = result[-1].target, not low
        else:
            low = number % 2 == 0
            source = 0 if low else end - source_bytes
        target = end - target_bytes if low else 0
        bottom, top = (source_bytes, target) if low else (target_bytes, source)
        inner = bottom if number % 2 else top - segment.inner_bytes
        result.append(Layout(source, target, inner))
    return result


class _Run:
    """One segment at its place."""

    def __init__(
        self, queues: Queues, graph: Graph, rates: Rates, segment: Segment, place: Layout
    ) -> None:
        self.queues, self.graph, self.rates = queues, graph, rates
        self.segment, self.tile = segment, -1
        self.held: dict[str | int, Window] = {}  # by tensor; of weights by the layer's number
        self.hold(segment.source_ring.tensor, segment.source_ring, place.source)
        self.hold(segment.target_ring.tensor, segment.target_ring, place.target)
        base = place.inner
        for ring in segment.between:
            base = self.hold(ring.tensor, ring, base)
        for n, weights in enumerate(segment.weights):
            base = self.hold(n, weights, base) if weights else base

    def hold(self, key: str | int, ring: Ring, base: int) -> int:
        """Where it ends."""
        tensor = self.graph.tensors[ring.tensor]
        sizes = [*tensor.shape]
        if len(sizes) > 1:
            sizes[0] = ring.rows
        sizes[-1] = ring.channels or sizes[-1]
        # residents are one window, whichever segment speaks of it
        name, places = f"{ring.tensor}@{base}.{sizes[0]}", (ring.copies, ring.copy_bytes)
        window = Window(name, tensor, base, tuple(sizes), 8, *places)
        self.held[key] = self.queues.windows[name] = window
        return base + ring.bytes

    def spans(self, key: str | int, rows: Rows, copy: int) -> list[slice]:
        """Where rows lie: a window's first axis is a ring of them; a vector of activations is one
        row."""
        window, grain = self.held[key], self.queues.grain
        base = window.base_bytes + copy % window.copies * window.copy_bytes
        ring, *row = window.sizes if len(window.sizes) > 1 else (1, *window.sizes)
        start, stop, row_bytes = rows[0] % ring, (rows[1] - 1) % ring + 1, prod(row)
        parts = [(start, stop)] if start < stop else [(start, ring), (0, stop)]
        if rows[1] - rows[0] >= ring:
            parts = [(0, ring)]
        places = ((base + low * row_bytes, base + high * row_bytes) for low, high in parts)
        return [slice(low // grain, -(-high // grain)) for low, high in places]

    # --- steps

    def frames(self, frames: Sequence[int]) -> None:
        segment = self.segment
        if segment.all_held:
            self.tile = -1  # every tile has its own place: it may be there still
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
        window, touched = self.held[tensor], self.spans(tensor, rows, copy)
        row_bytes = prod(window.sizes) // (window.sizes[0] if len(window.sizes) > 1 else 1)
        us = self.rates.move_us((rows[1] - rows[0]) * row_bytes, kind == "store")
        make = partial(act, kind, window, copy, rows, frame)
        card = [(tensor, frame, row) for row in range(*rows)]
        if kind == "load":
            self.queues.add("read", us, make, writes=touched, card=card)
        else:
            self.queues.add("write", us, make, reads=touched, card=card)

    def read_weights(self, n: int, number: int = 0, copy: int = 0) -> None:
        """Tile ``number`` of a layer's weights, or all of them."""
        layer, window = self.segment.layers[n], self.held.get(n)
        if window is None:
            return
        tile = window.sizes[0]
        rows = number * tile, (number + 1) * tile
        us = self.rates.move_us((min(rows[1], layer.channels) - rows[0]) * layer.row_bytes, False)
        make, place = partial(act, "load", window, copy, rows, 0), self.spans(n, (0, tile), copy)
        self.queues.add("read", us, make, writes=place, same=(layer.weight, rows[0]))

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

    def compute(self, n: int, turn: Turn, channels: Rows, tile: int, frame: int, copy: int) -> None:
        layer, rows, held = self.segment.layers[n], turn.computes[n], self.held
        depth, touched = layer.channels, list[slice]()
        for source, reads in zip(layer.sources, turn.reads[n], strict=True):
            if reads[0] < reads[1]:
                touched += self.spans(source.tensor, reads, copy)
        if n in held:
            touched += self.spans(n, (0, held[n].sizes[0]), tile)
        made = (rows[1] - rows[0]) / layer.rows
        share = made * (min(channels[1], depth) - channels[0]) / depth
        self.queues.add(
            "compute", self.rates.compute_us(layer.work * share),
            partial(self.made, n, rows, channels, tile, frame, copy),
            touched, self.spans(layer.target, rows, copy),
        )  # fmt: skip

    def made(self, n: int, rows: Rows, channels: Rows, tile: int, frame: int, copy: int) -> Act:
        layer, held = self.segment.layers[n], self.held
        given = [(held[source.tensor].name, copy) for source in layer.sources]
        given += [(held[n].name, tile)] if n in held else []
        target = held[layer.target]
        return act("make", target, copy, rows, frame, channels, layer.name, tuple(given))
