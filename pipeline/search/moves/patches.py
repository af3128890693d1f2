"""Propose patches: for the first part of a network, all else whole; or, between rows, strips that
slide wherever so many repeated multiply–accumulates save most.

Seen from the end of a stretch of operators, where patches are apart, every tensor before it is
needed in larger boxes that overlap: the halo is computed again for each patch (Lin et al.,
MCUNetV2, 2021).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product, takewhile

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator, Tensors
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.pool2d import AveragePool2d
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan
from pipeline.schedules.arriving import Arriving, streaming
from pipeline.schedules.bounds import reach
from pipeline.schedules.channels import ChannelByChannel, Pooled
from pipeline.schedules.draft import Draft
from pipeline.schedules.lower import Region, lay, load_of, needed
from pipeline.schedules.patches import Patches, Run
from pipeline.schedules.whole import Whole
from pipeline.search.joint.cuts import NEVER, Cuts
from pipeline.search.order import least_peak
from pipeline.search.view.rows import Units, adds_rows, drafted
from pipeline.search.view.whole import Span, View

Grid = tuple[int, int]

LONGEST = 8
"""Operators of a stretch between rows."""

ROWS = (1, 2, 3, 4, 6)
ACROSS = (4, 2)
"""Rows of strips, and columns of a step in them, that are tried."""

ENDS = 3
"""Places at which strips may end that are looked at."""

AT_ONCE = 8
"""Channels that are made together of an image that is pooled."""

LOWEST = 4
"""Peaks below such a part of the one without repeated work are not tried."""

CLOSE = 100
"""Peaks that are apart by less than such a part are one."""


def stretches(
    graph: Graph, operators: Sequence[Operator], longest: int = LONGEST
) -> Iterator[tuple[int, int]]:
    """Yield the numbers of the first and the last operator of each stretch of images through
    windows, of which nothing but the last image is read elsewhere."""
    read_last = View.of(graph.tensors, graph.starts, operators, *graph.ends).read_last
    for first in range(len(operators)):
        until = first
        for last, op in enumerate(operators[first : first + longest], first):
            if not _patchable(op, graph):
                break
            if until <= last:
                yield first, last
            until = max(until, read_last[op.output])


def _patchable(op: Operator, graph: Graph) -> bool:
    """Its output and all that it reads are images, of which a patch needs a part."""
    images = (op.output, *op.inputs)
    if adds_rows(op, graph) or any(len(graph.tensors[name].shape) != 3 for name in images):
        return False
    read = [each.windows[:2] for each in op.reads(graph.tensors) if each.tensor in images]
    return all(
        (down.axis, across.axis, down.divide, across.divide) == (0, 1, 1, 1)
        for down, across in read
    )


# --- the first part of a network, in a grid


def in_patches(graph: Graph, hardware: Hardware, grid: Grid, until: str = "") -> Plan:
    """A plan whose first part, to the tensor ``until`` or where the whole network's peak is least,
    runs in rows and columns of ``grid`` patches.

    Raises:
        ThimbleError: where the image streams in, or nothing can run so.
    """
    if streaming(graph, hardware):
        raise ThimbleError(
            f"strategy=patch reads the image again and again; on {hardware.name} it streams "
            "in: try strategy=auto"
        )
    stage, regions = least(graph, hardware, grid, until)
    once = sum(op.macs(graph.tensors) for op in stage.operators)
    notes = (
        ("patch_stage_end", stage.op.output),
        ("patch_stage_overhead_pct", round(100 * stage.again / max(1, once), 2)),
        ("patch_overhead_pct", round(100 * stage.again / max(1, graph.macs), 2)),
    )
    return lay(regions, Draft(graph, hardware)).plan("patch", notes)


def least(
    graph: Graph, hardware: Hardware, grid: Grid, until: str = ""
) -> tuple[Run, list[Region]]:
    """The stage with which the whole network's peak is least, then with the least work, and all
    regions."""
    stages = [run for run in ending(graph, grid) if until in ("", run.op.output)]
    best: tuple[tuple[int, int, int], Run, list[Region]] | None = None
    for stage in sorted(stages, key=_held):
        if best and _held(stage) > best[0][0]:
            break
        patches = (Patches(stage, top) for top in stage.tops)
        regions: list[Region] = [Arriving.of(graph, hardware), *patches, *_whole(stage)]
        key = load_of(regions, graph, hardware), stage.again, len(stage.operators)
        if best is None or key < best[0]:
            best = key, stage, regions
    if best is None:
        where = f"until {until}" if until else "for any of its first layers"
        raise ThimbleError(
            f"strategy=patch: {graph.name} cannot run in {grid[0]}x{grid[1]} patches "
            f"{where}: try strategy=auto, or fewer strategy.rows and .columns"
        )
    return best[1:]


def ending(graph: Graph, grid: Grid) -> list[Run]:
    """One for each tensor at which the part that runs in patches can end: an image of at least as
    many pixels a side as there are patches, through which everything passes."""
    found, operators = list[Run](), needed(graph)
    every = stretches(graph, operators, len(operators))
    for _, last in takewhile(lambda stretch: stretch[0] == 0, every):
        shape, after = graph.tensors[operators[last].output].shape, operators[last + 1 :]
        rows, columns = (-(-extent // n) for extent, n in zip(shape, grid, strict=False))
        run = Run(graph, tuple(operators[: last + 1]), rows, columns)
        large = shape[0] >= grid[0] and shape[1] >= grid[1]
        if large and run.reads and not any(graph.start in op.inputs for op in after):
            found.append(run)
    return found


def _held(stage: Run) -> int:
    """Nibbles of the image, of what the stage makes, and of the largest patch."""
    tensors = stage.graph.tensors
    return tensors[stage.graph.start].nibbles + tensors[stage.op.output].nibbles + stage.held


def _whole(stage: Run) -> list[Region]:
    """The operators behind ``stage`` whole, in the order with the least peak.

    A depthwise convolution that would then need more than the patches and than every operator that
    cannot do otherwise runs in the place of its input, channel by channel, as in the inference
    engine that patches were published with.
    """
    graph = stage.graph
    after = [op for op in needed(graph) if op not in stage.operators]
    rest = View.of(graph.tensors, (stage.op.output,), after, *graph.ends)
    rest, ways = rest.reordered(least_peak(rest).tasks), list[tuple[Whole, int, bool]]()
    for n, op in enumerate(rest.operators):
        dying = rest.dying(Span(n, n + 1))
        over = next((name for name in op.overwritable(rest.tensors) if name in dying), "")
        each = not over and _depthwise(op, rest.tensors) and op.inputs[0] in dying
        live = {*rest.live[n], op.output} - {over}
        ways.append((Whole(op, over), sum(rest.tensors[name].nibbles for name in live), each))
    limit = max([_held(stage), *(whole for _, whole, each in ways if not each)])
    return [ChannelByChannel(way.op) if each and n > limit else way for way, n, each in ways]


def _depthwise(op: Operator, tensors: Tensors) -> bool:
    """It keeps its input's shape and width, and channel c is made of channel c alone."""
    if not op.weighted or not op.channel_wise(tensors):
        return False
    source, target = tensors[op.inputs[0]], tensors[op.output]
    return (source.shape, source.dtype.bits) == (target.shape, target.dtype.bits)


# --- between rows


Strips = tuple[Run, ...]


def patched(graph: Graph, hardware: Hardware, most: int) -> tuple[Run | Pooled, ...]:
    """Runs that repeat up to ``most`` multiply–accumulates, of rows between strips alone; with them
    pools of what is made channel by channel, which repeat nothing.

    For a peak to aim at: each stretch, from the first one to where the rest holds no more, in
    strips of a row; then some of them in more rows, or in no strips, whatever saves most work, as
    long as the peak is met. Where more is left than may be repeated, the peak is too low: the
    lowest is found by halves. In the end strips are made in wider steps, where there is room.
    """
    search, best = _Search(graph, hardware, needed(graph)), Strips()
    high = search.peak(best)
    low = high // LOWEST
    while high - low > max(1, high // CLOSE):
        limit = (low + high) // 2
        found = search.within(limit, most)
        if found is not None and again(found) <= most:
            best, high = found, limit
        else:
            low = limit
    return (*search.wider(best, high), *search.pools)


def again(strips: Strips) -> int:
    """Multiply–accumulates that are repeated."""
    return sum(run.again for run in strips)


@dataclass
class _Search:
    """
    Attributes:
        pools: that are made of channels, one after the other.
        peaks: of strips, from one operator to another.
    """

    graph: Graph
    hardware: Hardware
    operators: Sequence[Operator]
    pools: tuple[Pooled, ...] = field(init=False)
    peaks: dict[tuple[Strips, int, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.draft = drafted(self.graph, self.hardware, self.operators, {})
        self.pools = pools(self.graph, self.operators)

    def peak(self, strips: Strips, first: int = 0, stop: int = 0) -> int:
        """Nibbles that the operators from ``first`` to ``stop``, or all, hold at most."""
        key = strips, first, stop or len(self.operators)
        if key not in self.peaks:
            graph = self.parts[key[1:]]
            streamed = streaming(self.graph, self.hardware) and not first
            pooled = (pool for pool in self.pools if pool.op in graph.operators)
            given = graph, self.hardware, graph.operators, streamed
            units = Units(*given, runs=(*strips, *pooled), alike=self.draft)
            self.peaks[key] = Cuts(units).least(NEVER, effort=0)[0]
        return self.peaks[key]

    @cached_property
    def parts(self) -> dict[tuple[int, int], Graph]:
        """Map the numbers of the first operator and the last (exclusive) to the graph of them: of
        all, and of those before and behind each stretch where one tensor is all that passes."""
        graph, end = self.graph, len(self.operators)
        found = {(0, end): replace(graph, operators=tuple(self.operators))}
        view = View.of(graph.tensors, graph.starts, self.operators, *graph.ends)
        for stop in self.sizes if not graph.states else ():
            name = self.operators[stop - 1].output
            if set(view.live[stop]) == {name} and stop < end:
                before, behind = self.operators[:stop], self.operators[stop:]
                found[0, stop] = replace(graph, operators=tuple(before), outputs=(name,))
                found[stop, end] = replace(graph, operators=tuple(behind), inputs=(name,))
        return found

    def within(self, limit: int, most: int) -> Strips | None:
        """Strips whose peak is within ``limit``, with as little work as is found, or ``most``."""
        end, found = len(self.operators), list[Strips]()
        for _, stop in sorted(part for part in self.parts if not part[0]):
            if stop < end and self.peak((), stop) > limit:
                continue
            if self.held(stop, self.smallest(stop)) <= limit:
                found.append(self.less(stop, limit, most))
                if again(found[-1]) <= most or len(found) == ENDS:
                    break
        return min(found, key=again, default=None)

    def strips(self, stop: int, chosen: Sequence[int]) -> Strips:
        """Return those numbered ``chosen`` of the stretches to ``stop``, whose options have numbers
        from the smallest strips on to none."""
        found = (each[number] for each, number in zip(self.options(stop), chosen, strict=True))
        return tuple(run for run in found if run)

    def options(self, stop: int) -> list[tuple[Run | None, ...]]:
        return [(*each[::-1], None) for last, each in self.sizes.items() if last <= stop]

    def held(self, stop: int, chosen: Sequence[int]) -> int:
        return self.peak(self.strips(stop, chosen), 0, stop)

    def smallest(self, stop: int) -> list[int]:
        """Choose for the least peak: the smallest strips, but where none hold less."""
        options = self.options(stop)
        chosen = [0] * len(options)
        for at, each in enumerate(options):
            ways = ([*chosen[:at], number, *chosen[at + 1 :]] for number in (0, len(each) - 1))
            chosen = min(ways, key=lambda way: self.held(stop, way))
        return chosen

    def less(self, stop: int, limit: int, most: int) -> Strips:
        """Those of the least peak, or larger ones, or none: where that saves most work first; then
        one in larger strips for another in smaller ones, until ``most`` is met."""
        options, chosen = self.options(stop), self.smallest(stop)

        def work(chosen: Sequence[int]) -> int:
            return again(self.strips(stop, chosen))

        def changed(*changes: tuple[int, int]) -> list[int]:
            return [dict(changes).get(at, number) for at, number in enumerate(chosen)]

        def first(ways: Iterable[list[int]]) -> list[int] | None:
            return next((way for way in ways if self.held(stop, way) <= limit), None)

        grown = [(at, number) for at, each in enumerate(options) for number in range(len(each))]
        for at, number in sorted(grown, key=lambda each: work(changed(each))):
            if number > chosen[at]:
                chosen = first([changed((at, number))]) or chosen
        while work(chosen) > most:
            more = [(at, n + 1) for at, n in enumerate(chosen) if n + 1 < len(options[at])]
            fewer = [(at, n - 1) for at, n in enumerate(chosen) if n]
            ways = [changed(*pair) for pair in product(more, fewer) if pair[0][0] != pair[1][0]]
            found = first(sorted((way for way in ways if work(way) < work(chosen)), key=work))
            if found is None:
                break
            chosen = found
        return self.strips(stop, chosen)

    def wider(self, strips: Strips, limit: int) -> Strips:
        """The same in steps of as many columns as the limit allows, the most steps first."""
        for run in sorted(strips, key=lambda run: -run.calls):
            at = strips.index(run)
            ways = (replace(run, columns=n) for n in ACROSS)
            others = ((*strips[:at], way, *strips[at + 1 :]) for way in ways if way.reads)
            strips = next((each for each in others if self.peak(each) <= limit), strips)
        return strips

    @cached_property
    def sizes(self) -> dict[int, Strips]:
        """Map the number behind each stretch's last operator to its strips of all heights, none
        worse than another in memory and work, the least work first."""
        found = dict[int, Strips]()
        for first, stop in self.parted():
            operators = tuple(self.operators[first:stop])
            every = (Run(self.graph, operators, rows, 1, slides=True) for rows in ROWS)
            kept = list[Run]()
            for run in sorted((run for run in every if run.reads), key=lambda run: run.again):
                if not kept or cells(run) < cells(kept[-1]):
                    kept.append(run)
            found |= {stop: tuple(kept)} if kept else {}
        return found

    def parted(self) -> list[tuple[int, int]]:
        """Stretches, such that rows between them, and between operators of none, have as few cells
        as possible. In each the windows of one operator overlap: work is repeated once, not more
        and more from the last patch to the first."""
        best: list[tuple[int, list[tuple[int, int]]]] = [(0, [])]
        able, makers = list(stretches(self.graph, self.operators)), {p.maker for p in self.pools}
        for number, op in enumerate(self.operators):
            tensor, ways = self.graph.tensors[op.output], [best[number]]
            for first in (first for first, last in able if first < last == number):
                part = self.operators[first : number + 1]
                once = sum(overlapping(each, self.graph) for each in part) == 1
                if once and makers.isdisjoint(part):
                    ways.append((best[first][0], [*best[first][1], (first, number + 1)]))
            total, parts = min(ways, key=lambda way: way[0])
            best.append((total + tensor.nibbles // tensor.shape[0], parts))
        return best[-1][1]


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


def cells(run: Run) -> int:
    """Count the nibbles of its patches, and of the rows that it needs and makes together."""
    ends = {name: run.graph.tensors[name] for name in (*run.outer, run.op.output)}
    rows = ((t, max(map(len, run.sides[name][0]))) for name, t in ends.items())
    return run.held + sum(n * t.nibbles // t.shape[0] for t, n in rows)


def overlapping(op: Operator, graph: Graph) -> bool:
    """Check whether outputs beside each other, or below, read some of the same."""
    return any(
        reach(window, 0, 1).size > window.stride
        for operand in op.reads(graph.tensors)
        if operand.tensor in op.inputs
        for window in operand.windows[:2]
    )
