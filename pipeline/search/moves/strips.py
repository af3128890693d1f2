"""Propose strips between rows, wherever so many repeated multiply–accumulates save most.

Where one tensor is all that passes, pieces of a network may meet: a piece makes its result in
strips of some rows, in which what lies between slides, or it makes rows one by one and repeats
nothing. Backward from a tensor that is whole, a *label* for each way of pieces says what these hold
and repeat; of labels none is kept that another is better than in everything. From label to label,
or row by row, goes a shortest path through the network: the least work whose peak is within a
limit.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.pool2d import AveragePool2d
from pipeline.hardware import Hardware
from pipeline.schedules.arriving import streaming
from pipeline.schedules.bounds import reach
from pipeline.schedules.channels import Pooled
from pipeline.schedules.lower import needed
from pipeline.schedules.patches import Run
from pipeline.schedules.rows import rows_of
from pipeline.search.joint.cuts import NEVER, Cuts, Piece
from pipeline.search.moves.patches import stretches
from pipeline.search.view.rows import Units, adds_rows, drafted
from pipeline.search.view.whole import View

LONGEST = 10
"""Operators of a piece, and of a part that is not made of strips."""

ROWS = (1, 2, 3, 4, 6)
ACROSS = (4, 2)
"""Rows of strips, and columns of a step in them, that are tried."""

LABELS = (8, 40)
"""That are kept of ways that go on alike: in a first search, for a limit, and in a second one."""

SHARES = 12
"""Into which allowed work is cut, of each of which some labels are kept."""

GRAIN = 300
"""Labels that are apart by less than such a part of the peak are one."""

NEAR = 16
"""Peaks above the least found by no more than such a part may be less where they are exact."""

TRIED = 8
"""Choices of strips whose peak is looked at exactly."""

AT_ONCE = 8
"""Channels that are made together of an image that is pooled."""

Strips = tuple[Run, ...]


def patched(graph: Graph, hardware: Hardware, most: int) -> tuple[Run | Pooled, ...]:
    """Find runs that repeat up to ``most`` multiply–accumulates, of rows between strips alone; with
    them pools of what is made channel by channel, which repeat nothing. In the end strips are made
    in wider steps, where there is room."""
    search = _Search(graph, hardware, most)
    for labels in LABELS:
        search.labels = labels
        search.ways = search.all_ways()
        limits = sorted({*search.plain.values(), *(w.peak for w in _each(search.ways))})
        at = bisect_left(limits, True, key=lambda limit: search.within(limit) is not None)
        search.high = min(search.high, limits[at] + limits[at] // NEAR)
    found = [search.within(limit) or () for limit in limits[at : at + TRIED]]
    best = min(dict.fromkeys(found), key=lambda strips: (search.peak(strips), again(strips)))
    return (*search.wider(best), *search.pools)


def again(strips: Iterable[Run]) -> int:
    """Count multiply–accumulates that are repeated."""
    return sum(run.again for run in strips)


class Label(NamedTuple):
    """Pieces one after the other, in nibbles.

    Attributes:
        peak: that they hold at most while one behind the first works.
        first: while the first works, but for what it reads.
        waits: while pieces before them work.
    """

    peak: int = 0
    first: int = 0
    waits: int = 0
    again: int = 0
    strips: Strips = ()


class Part(NamedTuple):
    """``reads``: rows of its source, of each strip; ``held``: nibbles between both ends."""

    start: int
    rows: int
    reads: tuple[range, ...]
    held: int
    strips: Strips = ()


class Flow(NamedTuple):
    """Rows of a tensor: at most, when its maker goes on, and when those behind its reader do."""

    most: int
    waits: int
    left: int

    @classmethod
    def of(cls, height: int, rows: int, reads: Sequence[range]) -> Flow:
        """Count those of a tensor made ``rows`` at once, as often as each of ``reads`` needs."""
        tops = [min(height, -(-read.stop // rows) * rows) for read in reads]
        most = max(top - read.start for top, read in zip(tops, reads, strict=True))
        left = (top - read.start for top, read in zip(tops, reads[1:], strict=False))
        return cls(most, max(0, most - rows), max(left, default=0))


Ways = dict[tuple[int, int], list[Label]]


def _each(ways: Ways) -> Iterator[Label]:
    return (label for some in ways.values() for label in some)


@dataclass
class _Search:
    """
    Attributes:
        alone: tensors that are all that passes, by the number of the operator behind them.
        plain: nibbles of parts, from place to place, without strips.
        ways: labels of parts with strips.
        high: nibbles that are known to be enough.
        pools: that are made of channels, one after the other.
    """

    graph: Graph
    hardware: Hardware
    most: int
    labels: int = 0
    ways: Ways = field(default_factory=dict)

    def __post_init__(self) -> None:
        graph, self.operators = self.graph, needed(self.graph)
        self.draft = drafted(graph, self.hardware, self.operators, {})
        self.pools, last = pools(graph, self.operators), len(self.operators)
        cuts = self.cuts(())
        self.high = cuts.least(NEVER, effort=0)[0]
        inner = {name for pool in self.pools for name in pool.inner}
        live = View.of(graph.tensors, graph.starts, self.operators, *graph.ends).live
        passing = [set(graph.starts), *map(set, live[1:last]), set(graph.ends)]
        self.alone = {p: min(s) for p, s in enumerate(passing) if len(s) == 1 and not s & inner}
        places = sorted({0, last, *self.alone})
        self.sizes = {p: self._row(name) for p, name in self.alone.items()}
        cuts.left = NEVER
        self.plain = {
            (start, stop): cuts.peak(Piece(start, stop), self.high)
            for at, start in enumerate(places)
            for stop in places[at + 1 :]
            if stop - start <= LONGEST or stop == places[at + 1]
        }
        for start, stop in pairwise(places):
            if stop == start + 1:
                layer = cuts.peak(Piece(start, stop, "layers"), self.high)
                self.plain[start, stop] = min(layer, self.plain[start, stop])
        self.pieces = self._pieces()

    def cuts(self, strips: Strips) -> Cuts:
        given = self.graph, self.hardware, self.operators, streaming(self.graph, self.hardware)
        return Cuts(Units(*given, runs=[*strips, *self.pools], alike=self.draft))

    def peak(self, strips: Strips) -> int:
        """Count nibbles that are held at most."""
        return self.cuts(strips).least(NEVER, effort=0)[0]

    def _row(self, name: str) -> int:
        tensor = self.graph.tensors[name]
        return 0 if name in self.draft.elsewhere else tensor.nibbles // rows_of(self.graph, name)

    def _pieces(self) -> dict[int, list[Part]]:
        """List those that end at each place; none at a tensor that is wider than both beside it."""
        makers = {pool.maker for pool in self.pools}
        beside = zip(self.alone, [*self.alone][1:], [*self.alone][2:], strict=False)
        wide = {p for a, p, b in beside if self.sizes[p] > max(self.sizes[a], self.sizes[b])}
        ends, found = self.alone.keys() - wide, defaultdict[int, list[Part]](list)
        for start, last in stretches(self.graph, self.operators, LONGEST):
            operators = tuple(self.operators[start : last + 1])
            if {start, last + 1} <= ends and makers.isdisjoint(operators):
                found[last + 1] += self._sizes(start, operators)
        return found

    def _sizes(self, start: int, operators: tuple[Operator, ...]) -> Iterator[Part]:
        """Yield rows one by one, and strips of so many."""
        name, tensors = self.alone[start], self.graph.tensors
        height, width, _ = tensors[operators[-1].output].shape
        rows = Run(self.graph, operators, 1, width)
        if rows.reads:
            inner = ((len(max(rows.sides[n][0], key=len)), self._row(n)) for n in rows.inner)
            held = sum(n * size for n, size in inner)
            yield Part(start, 1, tuple(rows.sides[name][0]), held)
        for each in ROWS if len(operators) > 1 else ():
            run = Run(self.graph, operators, each, 1, slides=True)
            if each < height and run.reads and run.again <= self.most:
                yield Part(start, each, tuple(run.sides[name][0]), run.held, (run,))

    def all_ways(self) -> Ways:
        """Find the parts that strips may make, each with labels within ``high``."""
        found = Ways()
        for stop in self.pieces:
            found |= {(start, stop): some for start, some in self._back(stop).items()}
        return found

    def _back(self, stop: int) -> dict[int, list[Label]]:
        """Go from the whole tensor at ``stop`` to each before it; the first may come in by rows."""
        whole = (range(rows_of(self.graph, self.alone[stop])),)
        known: dict[int, dict[tuple[range, ...], list[Label]]] = {stop: {whole: [Label()]}}
        for end in range(stop, 0, -1):
            for reads, labels in known.get(end, {}).items():
                kept = self._best(labels)
                for piece in self.pieces.get(end, ()):
                    flow, row = Flow.of(self._height(end), piece.rows, reads), self.sizes[end]
                    grown = (self._before(label, piece, flow, row) for label in kept)
                    able = [g for g in grown if max(g[:2]) <= self.high and g.again <= self.most]
                    known.setdefault(piece.start, {}).setdefault(piece.reads, []).extend(able)
        del known[stop]
        found = dict[int, list[Label]]()
        for start, each in known.items():
            arrives = streaming(self.graph, self.hardware) and not start
            rows = 1 if arrives else self._height(start)
            for reads, labels in each.items() if not start or stop - start <= LONGEST else ():
                flow = Flow.of(self._height(start), rows, reads)
                ended = (self._before(la, None, flow, self.sizes[start]) for la in labels)
                found.setdefault(start, []).extend(e for e in ended if e.strips)
        return {start: self._best(some) for start, some in found.items()}

    def _height(self, place: int) -> int:
        return rows_of(self.graph, self.alone[place])

    def _before(self, label: Label, piece: Part | None, flow: Flow, row: int) -> Label:
        """Put ``piece``, or nothing but what is read, before ``label``; between them ``row``
        nibbles a row."""
        peak = max(label.peak + flow.left * row, label.first + flow.most * row)
        if piece is None:
            return label._replace(peak=peak, first=0)
        return Label(
            peak,
            piece.held + flow.most * row + label.waits,
            label.waits + flow.waits * row,
            label.again + again(piece.strips),
            (*piece.strips, *label.strips),
        )

    def _best(self, labels: Iterable[Label]) -> list[Label]:
        """Keep those that are within the limit and that none is better than; of too many some for
        each share of the work."""
        grain, share = max(1, self.high // GRAIN), max(1, self.most // SHARES)
        found = dict[tuple[int, ...], Label]()
        for label in sorted(labels, key=lambda label: (max(label[:2]), label.again)):
            key = *(n // grain for n in label[:3]), label.again * 5 // share
            within = max(label[:2]) <= self.high
            if within and not any(all(map(int.__le__, other, key)) for other in found):
                found[key] = label
        shares = defaultdict[int, list[Label]](list)
        for label in found.values():
            shares[label.again // share].append(label)
        few = max(1, self.labels // max(1, len(shares)))
        return [label for some in shares.values() for label in some[:few]]

    def within(self, limit: int) -> Strips | None:
        """Find strips with the least work whose peak is within ``limit``; None with more than
        allowed, or where there are none."""
        last = len(self.operators)
        found: dict[int, tuple[int, Strips]] = {0: (0, ())}
        for start, stop in sorted({*self.plain, *self.ways}, key=lambda part: part[::-1]):
            if start in found:
                work, strips = found[start]
                ways = [found[stop]] if stop in found else []
                ways += [found[start]] * (self.plain.get((start, stop), NEVER) <= limit)
                for label in self.ways.get((start, stop), ()):
                    if label.peak <= limit:
                        ways.append((work + label.again, (*strips, *label.strips)))
                if ways:
                    found[stop] = min(ways, key=lambda way: way[0])
        return found[last][1] if last in found and found[last][0] <= self.most else None

    def wider(self, strips: Strips) -> Strips:
        """Make the same in steps of as many columns as hold no more, the most steps first."""
        limit = self.peak(strips)
        for run in sorted(strips, key=lambda run: -run.calls):
            at = strips.index(run)
            ways = (replace(run, columns=n) for n in ACROSS)
            others = ((*strips[:at], way, *strips[at + 1 :]) for way in ways if way.reads)
            strips = next((each for each in others if self.peak(each) <= limit), strips)
        return strips


def pools(graph: Graph, operators: Sequence[Operator]) -> tuple[Pooled, ...]:
    """Find images that convolutions of single pixels make wider, and of which nothing but the mean
    of each channel is read."""
    found, makers = list[Pooled](), {op.output: op for op in operators}
    read = Counter(name for op in operators for name in op.inputs)
    for op in operators:
        maker = makers.get(op.inputs[0])
        if isinstance(op, AveragePool2d) and isinstance(maker, Conv2d) and adds_rows(op, graph):
            source, image = (graph.tensors[each.inputs[0]] for each in (maker, op))
            pixels = source.shape[:-1] == image.shape[:-1] and not overlapping(maker, graph)
            alone = read[image.name] == 1 and image.name not in graph.ends
            if pixels and alone and image.shape[-1] > source.shape[-1]:
                found.append(Pooled(graph, maker, op, AT_ONCE))
    return tuple(found)


def overlapping(op: Operator, graph: Graph) -> bool:
    """Check whether outputs beside each other, or below, read some of the same."""
    return any(
        reach(window, 0, 1).size > window.stride
        for operand in op.reads(graph.tensors)
        if operand.tensor in op.inputs
        for window in operand.windows[:2]
    )
