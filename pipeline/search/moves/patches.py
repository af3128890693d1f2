"""Propose patches for the first part of a network, all else whole.

Seen from the end of a stretch of operators, where patches are apart, every tensor before it is
needed in larger boxes that overlap: the halo is computed again for each patch (Lin et al.,
MCUNetV2, 2021).
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator, Tensors
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan
from pipeline.schedules.arriving import Arriving, streaming
from pipeline.schedules.channels import ChannelByChannel
from pipeline.schedules.draft import Draft
from pipeline.schedules.lower import Region, lay, load_of, needed
from pipeline.schedules.patches import Patches, Run
from pipeline.schedules.whole import Whole
from pipeline.search.order import least_peak
from pipeline.search.view.rows import adds_rows
from pipeline.search.view.whole import Span, View

Grid = tuple[int, int]


def stretches(
    graph: Graph, operators: Sequence[Operator], longest: int
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
    """Check that its output and all that it reads are images, of which a patch needs a part."""
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
    """Return a plan whose first part, to the tensor ``until`` or where the whole network's peak is
    least, runs in rows and columns of ``grid`` patches.

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
    """Return the stage with which the whole network's peak is least, then with the least work, and
    all regions."""
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
    """Return one for each tensor at which the part that runs in patches can end: an image of at
    least as many pixels a side as there are patches, through which everything passes."""
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
    """Return the operators behind ``stage`` whole, in the order with the least peak.

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
