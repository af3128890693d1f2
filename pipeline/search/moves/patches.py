"""Propose patches for the first part of a network, and how the rest follows.

Seen from its end, where patches are apart, every tensor before it is needed in larger, overlapping
tiles: the halo, which is computed again for each patch (Lin et al., MCUNetV2, 2021).
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator, Tensors
from pipeline.hardware import Hardware
from pipeline.kernels import modelled_cycles
from pipeline.plan.vocabulary import Lin, Plan
from pipeline.schedules.arriving import Arriving
from pipeline.schedules.bounds import Box, Range, all_of, hull, needs
from pipeline.schedules.channels import ChannelByChannel
from pipeline.schedules.draft import Chosen
from pipeline.schedules.lower import Laid, Region, lay, load_of, needed, with_room
from pipeline.schedules.patches import VARIABLES, Patches, at, tiled
from pipeline.schedules.whole import Whole
from pipeline.search.order import floor, least_peak
from pipeline.search.view.whole import Span, View

Grid = tuple[int, int]


def ends(graph: Graph, start: str, operators: Sequence[Operator], grid: Grid) -> list[Patches]:
    """One for each tensor at which the part that runs in patches can end: an image of at least as
    many pixels a side as there are patches, through which everything passes."""
    found, before = list[Patches](), dict[str, set[str]]()
    for op in operators:
        before[op.output] = {op.output}.union(*(before.get(name, set()) for name in op.inputs))
    for op in operators:
        inside = [each for each in operators if each.output in before[op.output]]
        rest = [each for each in operators if each.output not in before[op.output]]
        hidden = (before[op.output] | {start}) - {op.output}
        if any(hidden & set(each.inputs) for each in rest):
            continue
        stage = _stage(graph, start, inside, grid)
        if stage is None:
            break  # what cannot be tiled is part of every longer stage, too
        if stage.reads(graph):
            found.append(stage)
    return found


def _stage(graph: Graph, start: str, operators: list[Operator], grid: Grid) -> Patches | None:
    end = operators[-1].output
    shape = graph.tensors[end].shape
    if len(shape) != 3 or shape[0] < grid[0] or shape[1] < grid[1]:
        return None
    sizes = [-(-extent // patches) for extent, patches in zip(shape[:2], grid, strict=True)]
    tiles: dict[str, Box] = {end: (*map(tiled, VARIABLES, sizes), *all_of(shape[2:]))}
    for op in reversed(operators):
        read = needs(op, graph.tensors, tiles[op.output])
        for name in dict.fromkeys(op.inputs):
            extents, box = graph.tensors[name].shape, read[name]
            known = tiles.get(name, box)
            both = tuple(map(hull, known, box, extents))
            if len(extents) != 3 or not all(map(_moves_with, both, VARIABLES)):
                return None
            tiles[name] = (*both[:2], *all_of(extents[2:]))
    rows, columns = (-(-extent // size) for extent, size in zip(shape[:2], sizes, strict=True))
    tiles = {name: settled(tile, graph, name, (rows, columns)) for name, tile in tiles.items()}
    return Patches(start, end, tuple(operators), (rows, columns), tiles)


def _moves_with(part: Range, variable: str) -> bool:
    """And with no other."""
    return isinstance(part.low, Lin) and [name for name, _ in part.low.coef] == [variable]


def settled(tile: Box, graph: Graph, name: str, grid: Grid) -> Box:
    """``tile`` without the loop along an axis of one patch: it is all that it is there."""
    pairs = zip(VARIABLES, grid, tile[:2], graph.tensors[name].shape[:2], strict=True)
    sides = (
        part if patches > 1 else at(part, extent, {variable: 0})
        for variable, patches, part, extent in pairs
    )
    return (*sides, *tile[2:])


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
    each = [replace(r, apart=True) if r == stage else r for r in regions]

    def laid(regions: Sequence[Region]) -> Laid:
        return with_room(lambda scratch: lay(regions, graph, hardware, scratch=scratch))

    plans = (laid(way).plan("patch") for way in (regions, each))
    best = min(plans, key=lambda plan: modelled_cycles(plan, graph, hardware))
    once = sum(op.macs(graph.tensors) for op in stage.operators)
    again = stage.macs(graph) - once
    notes = (
        ("patch_stage_end", stage.end),
        ("patch_stage_overhead_pct", round(100 * again / max(1, once), 2)),
        ("patch_overhead_pct", round(100 * again / max(1, graph.macs), 2)),
    )
    return replace(best, notes=notes)


def least(
    graph: Graph, hardware: Hardware, grid: Grid, until: str = ""
) -> tuple[Patches, list[Region]]:
    """The stage with which the whole network's peak is least, then with the least work, and all
    regions."""
    operators = needed(graph)
    stages = ends(graph, graph.input, operators, grid)
    if until:
        stages = [stage for stage in stages if stage.end == until]
    if not stages:
        where = f"until {until}" if until else "for any of its first layers"
        raise ThimbleError(
            f"strategy=patch: {graph.name} cannot run in {grid[0]}x{grid[1]} patches "
            f"{where}: try strategy=auto, or fewer strategy.rows and .columns"
        )
    chosen: Chosen = {}
    arriving = Arriving.of(graph, hardware)
    tried = list[tuple[int, int, int, View]]()
    for n, stage in enumerate(stages):
        after = [op for op in operators if op not in stage.operators]
        rest = View.of(graph.tensors, stage.end, after, graph.output)
        limit = load_of([arriving, stage], graph, hardware, stage.end, chosen)
        bound = floor(rest.in_place(partial(_depthwise, tensors=graph.tensors)))
        tried.append((max(limit, bound), n, limit, rest))
    best: tuple[tuple[int, int, int], list[Region]] | None = None
    for bound, n, limit, rest in sorted(tried, key=lambda each: each[:2]):
        if best and bound > best[0][0]:
            break
        regions: list[Region] = [arriving, stages[n], *_whole(rest, limit)]
        key = load_of(regions, graph, hardware, chosen=chosen), stages[n].macs(graph), n
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
