"""Propose patches for the first part of a network, and how the rest follows.

Seen from its end, where patches are apart, every tensor before it is needed in larger boxes that
overlap: the halo is computed again for each patch (Lin et al., MCUNetV2, 2021).
"""

from collections.abc import Sequence
from dataclasses import replace

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator, Tensors
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan
from pipeline.schedules.arriving import Arriving
from pipeline.schedules.channels import ChannelByChannel
from pipeline.schedules.lower import Region, lay, load_of, needed
from pipeline.schedules.patches import Patches, Run
from pipeline.schedules.whole import Whole
from pipeline.search.joint.patches import patchable
from pipeline.search.order import floor, least_peak
from pipeline.search.view.whole import Span, View

Grid = tuple[int, int]


def ending(graph: Graph, start: str, operators: Sequence[Operator], grid: Grid) -> list[Run]:
    """One for each tensor at which the part that runs in patches can end: an image of at least as
    many pixels a side as there are patches, through which everything passes."""
    found, view = list[Run](), View.of(graph.tensors, start, operators, graph.output)
    for number, op in enumerate(operators, 1):
        if not patchable(op, graph):
            break  # it is part of every longer stage, too
        sides = list(zip(graph.tensors[op.output].shape, grid, strict=False))
        sizes = (-(-extent // patches) for extent, patches in sides)
        run = Run(graph, tuple(operators[:number]), *sizes)
        large = all(extent >= patches for extent, patches in sides)
        if large and view.live(number) == [op.output] and run.reads:
            found.append(run)
    return found


def in_patches(graph: Graph, hardware: Hardware, grid: Grid, until: str = "") -> Plan:
    """A plan whose first part, to the tensor ``until`` or where the whole network's peak is least,
    runs in rows and columns of ``grid`` patches.

    Raises:
        ThimbleError: where the image streams in, or nothing can run so.
    """
    if hardware.streams_input:
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
    return lay(regions, graph, hardware).plan("patch", notes)


def least(
    graph: Graph, hardware: Hardware, grid: Grid, until: str = ""
) -> tuple[Run, list[Region]]:
    """The stage with which the whole network's peak is least, then with the least work, and all
    regions."""
    operators = needed(graph)
    stages = ending(graph, graph.input, operators, grid)
    if until:
        stages = [stage for stage in stages if stage.op.output == until]
    if not stages:
        where = f"until {until}" if until else "for any of its first layers"
        raise ThimbleError(
            f"strategy=patch: {graph.name} cannot run in {grid[0]}x{grid[1]} patches "
            f"{where}: try strategy=auto, or fewer strategy.rows and .columns"
        )
    arriving = Arriving.of(graph, hardware)
    tried = list[tuple[int, int, int, View]]()
    for n, stage in enumerate(stages):
        after = [op for op in operators if op not in stage.operators]
        rest = View.of(graph.tensors, stage.op.output, after, graph.output)
        ends = (graph.tensors[name].nibbles for name in (graph.input, stage.op.output))
        limit = sum(ends) + stage.held
        tasks = (
            task._replace(over=task.reads) if _depthwise(op, graph.tensors) else task
            for task, op in zip(rest.tasks, after, strict=True)
        )
        bound = floor(replace(rest, tasks=tuple(tasks)))
        tried.append((max(limit, bound), n, limit, rest))
    best: tuple[tuple[int, int, int], list[Region]] | None = None
    for bound, n, limit, rest in sorted(tried, key=lambda each: each[:2]):
        if best and bound > best[0][0]:
            break
        stage = stages[n]
        patches = (Patches(stage, top) for top in stage.tops)
        regions: list[Region] = [arriving, *patches, *_whole(rest, limit)]
        key = load_of(regions, graph, hardware), stage.again, n
        if best is None or key < best[0]:
            best = key, regions
    assert best is not None
    return stages[best[0][2]], best[1]


def _whole(rest: View, limit: int) -> list[Region]:
    """The operators behind patches whole, in the order with the least peak.

    A depthwise convolution that would then need more than the patches, ``limit`` nibbles, and than
    every operator that cannot do otherwise runs in the place of its input, channel by channel, as
    in the inference engine that patches were published with.
    """
    rest, ways = rest.reordered(least_peak(rest).tasks), list[tuple[Whole, int, bool]]()
    for n, op in enumerate(rest.operators):
        dying = rest.dying(Span(n, n + 1))
        over = next((name for name in op.overwritable(rest.tensors) if name in dying), "")
        each = not over and _depthwise(op, rest.tensors) and op.inputs[0] in dying
        live = {*rest.live(n), op.output} - {over}
        ways.append((Whole(op, over), sum(rest.tensors[name].nibbles for name in live), each))
    limit = max([limit, *(whole for _, whole, each in ways if not each)])
    return [ChannelByChannel(way.op) if each and n > limit else way for way, n, each in ways]


def _depthwise(op: Operator, tensors: Tensors) -> bool:
    """It keeps its input's shape and width, and channel c is made of channel c alone."""
    if not op.weighted or not op.channel_wise(tensors):
        return False
    source, target = tensors[op.inputs[0]], tensors[op.output]
    return (source.shape, source.dtype.bits) == (target.shape, target.dtype.bits)
