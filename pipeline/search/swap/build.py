"""Segments as a program: what is read, computed and written, where, in which order."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Literal

from pipeline.graph.graph import Graph
from pipeline.plan.rates import Rates
from pipeline.schedules.bounds import Range, all_of
from pipeline.schedules.swapped import Act, Kind, Window
from pipeline.search.swap.queues import Queues
from pipeline.search.swap.segments import Segment
from pipeline.search.view.tiles import Rows


def act(
    kind: Kind, window: Window, copy: int, rows: Rows, frame: int, channels: Rows | None = None,
    op: str = "", given: tuple[tuple[str, int], ...] = (),
) -> Act:  # fmt: skip
    """Make an act on a feature map's rows, whole or some channels; on weights' output channels."""
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


def layout(segments: Sequence[Segment], sram_bytes: int, grain: int) -> Iterator[tuple[int, ...]]:
    """Byte addresses of each segment's source and target, and of what it needs besides."""
    target, low, end = 0, True, sram_bytes // grain * grain
    for number, segment in enumerate(segments):
        source_ring, target_ring, *others = segment.places.values()
        if segment.kept and number:
            source, low = target, not low
        else:
            low = number % 2 == 0
            source = 0 if low else end - source_ring.bytes
        target = end - target_ring.bytes if low else 0
        bottom, top = (source_ring.bytes, target) if low else (target_ring.bytes, source)
        yield source, target, bottom if number % 2 else top - sum(ring.bytes for ring in others)


class _Run:
    """One segment at its place."""

    def __init__(
        self, queues: Queues, graph: Graph, rates: Rates, segment: Segment, bases: Iterable[int]
    ) -> None:
        self.queues, self.rates, self.segment, self.tile = queues, rates, segment, -1
        self.held: dict[str | int, Window] = {}  # by tensor; of weights by the layer's number
        firsts, base = iter(bases), 0
        for key, ring in segment.places.items():
            base = next(firsts, base)
            tensor = graph.tensors[ring.tensor]
            sizes = [*tensor.shape]
            if len(sizes) > 1:
                sizes[0] = ring.rows
            sizes[-1] = ring.channels or sizes[-1]
            # residents are one window, whichever segment speaks of it
            name, places = f"{ring.tensor}@{base}.{sizes[0]}", (ring.copies, ring.copy_bytes)
            window = Window(name, tensor, base, tuple(sizes), 8, *places)
            self.held[key] = queues.windows[name] = window
            base += ring.bytes

    def spans(self, key: str | int, rows: Rows, copy: int) -> list[slice]:
        """Find the spans in which rows lie, in grains."""
        ring, grain = self.segment.places[key], self.queues.grain
        first = (self.held[key].base_bytes + copy % ring.copies * ring.copy_bytes) // grain
        start, stop = rows[0] % ring.rows, (rows[1] - 1) % ring.rows + 1
        parts = [(start, stop)] if start < stop else [(start, ring.rows), (0, stop)]
        if rows[1] - rows[0] >= ring.rows:
            parts = [(0, ring.rows)]
        ends = ((low * ring.row_bytes, high * ring.row_bytes) for low, high in parts)
        return [slice(first + low // grain, first - (-high // grain)) for low, high in ends]

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
                if turn[n][0] < turn[n][1] and layer not in segment.by_tile:
                    self.layer(n, turn, frames)
            if segment.target != "kept":
                for copy, frame in enumerate(frames):
                    self.move("store", segment.layers[-1].target, turn[-1], frame, copy)

    def layer(self, n: int, turn: Sequence[Rows], frames: Sequence[int]) -> None:
        """Build by tiles of weights where these are streamed, and what goes through by tile."""
        segment, streamed = self.segment, n == self.segment.streamed
        size = segment.tile if streamed else segment.layers[n].channels
        for number in range(segment.tiles if streamed else 1):
            self.tile += streamed
            channels, tile = (number * size, (number + 1) * size), self.tile * streamed
            self.read_weights(n, number, tile)
            for copy, frame in enumerate(frames):
                self.compute(n, turn[n], channels, tile, frame, copy)
            for m in range(n + 1, n + 1 + len(segment.by_tile) * streamed):
                self.read_weights(m)
                self.compute(m, turn[m], channels, 0, frames[0], 0)

    def move(
        self, kind: Literal["load", "store"], key: str | int, rows: Rows, frame: int, copy: int
    ) -> None:
        """Rows of a feature map; or of weights, which are read only where they are not there."""
        if rows[0] >= rows[1]:
            return
        window, name = self.held[key], self.held[key].tensor.name
        number = min(rows[1], window.tensor.shape[0]) - rows[0]
        size = number * self.segment.places[key].row_bytes
        us, touched = self.rates.move_us(size, kind == "store"), self.spans(key, rows, copy)
        make = partial(act, kind, window, copy, rows, frame)
        same, card = (name, rows[0]), [(name, frame, row) for row in range(*rows)]
        if kind == "store":
            self.queues.add("write", us, make, reads=touched, card=card)
        elif key == name:
            self.queues.add("read", us, make, writes=touched, card=card)
        else:
            self.queues.add("read", us, make, writes=touched, same=same)

    def read_weights(self, n: int, number: int = 0, copy: int = 0) -> None:
        """Tile ``number`` of a layer's weights, or all of them."""
        if n in self.held:
            tile = self.segment.places[n].rows
            self.move("load", n, (number * tile, (number + 1) * tile), 0, copy)

    def compute(self, n: int, rows: Rows, channels: Rows, tile: int, frame: int, copy: int) -> None:
        layer, held = self.segment.layers[n], self.held
        touched, given = list[slice](), list[tuple[str, int]]()
        for source in layer.sources:
            given.append((held[source.tensor].name, copy))
            low, high = source.needed(*rows)
            if low < high:
                touched += self.spans(source.tensor, (low, high), copy)
        if n in held:
            given.append((held[n].name, tile))
            touched += self.spans(n, (0, self.segment.places[n].rows), tile)
        made = (rows[1] - rows[0]) / layer.rows
        share = made * (min(channels[1], layer.channels) - channels[0]) / layer.channels
        us, target = self.rates.compute_us(layer.work * share), held[layer.target]
        make = partial(
            act, "make", target, copy, rows, frame, channels, op=layer.name, given=tuple(given)
        )
        self.queues.add("compute", us, make, touched, self.spans(layer.target, rows, copy))
