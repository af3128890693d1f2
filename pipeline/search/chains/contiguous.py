"""Layout ``contiguous``: the paper's. Outputs grow from one end while inputs die at the other.

Inputs lie at the top of the arena and outputs at the bottom. Before a column is peeled, what is
left of the input is transposed in place (section 4.1), so that it dies from its lower end as it
does when rows are peeled. In the end an in-place permutation brings the outputs into row-major
order (section 4.2). Layers alternate between the ends: every other one runs mirrored.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import lcm

from pipeline.graph.tensor import Tensor, beside
from pipeline.placement.blocks import WORD, round_up
from pipeline.plan.vocabulary import Buffer
from pipeline.schedules.bounds import ranges
from pipeline.schedules.traversed import Run, Turn
from pipeline.search.chains.arrangement import Arrangement, Traversal, fits_beside
from pipeline.search.chains.layer import Layer, PixelBox, Pixels
from pipeline.search.chains.traversals import Axis, Peels, ranks
from pipeline.search.chains.two_ends import Ends, needed_nibbles


def mirrored(layers: int) -> list[bool]:
    """Of each layer of a chain whether it runs mirrored; the last one does not."""
    return [(layers - 1 - n) % 2 == 1 for n in range(layers)]


def arrange(start: Tensor, beside: int, chain: Sequence[Traversal]) -> Arrangement:
    """Lay the chain out from end to end so that the last output lies at the bottom."""
    first, needs, tops = Pixels.of(start), [0], [1]
    turned = mirrored(len(chain))
    for (layer, peels), turn in zip(chain, turned, strict=True):
        needs.append(needed_nibbles(layer, peels, turn))
        tops.append((layer.outputs if turn else layer.inputs).nibbles_per_element)
    above = 0 if len(chain) % 2 else round_up(first.total, WORD) if beside else first.total
    nibbles = round_up(max(first.total + beside, above + beside, *needs), lcm(*tops))
    buffers = [_packed(Ends(nibbles, len(chain) % 2 == 0), start, nibbles - first.total)]
    runs: list[Run | Turn] = []
    for (layer, peels), turn in zip(chain, turned, strict=True):
        more, added = _layer(Ends(nibbles, turn), layer, peels, buffers[-1])
        buffers, runs = buffers + more, runs + added
    return Arrangement(nibbles, tuple(buffers), above, tuple(runs))


def _layer(
    ends: Ends, layer: Layer, peels: Peels, source: Buffer
) -> tuple[list[Buffer], list[Run | Turn]]:
    """Buffers and runs of one layer; the last buffer is its output, row-major."""
    target = _packed(ends, layer.target, 0)
    if fits_beside(layer, ends.nibbles):
        return [target], [layer.run(source, target, layer.outputs.box)]
    buffers, runs = list[Buffer](), list[Run | Turn]()
    written, unordered = _written(ends, layer, peels, target)
    top, left, facing = 0, 0, "row"
    for axis, group in groupby(peels, lambda line: line.axis):
        lines = tuple(group)
        if axis != facing:
            facing = axis
            name = beside(layer.tensors, source.tensor, f"{len(buffers) + 1}")
            turned = _turned(ends, layer, top, left, facing, name)
            box = (top, layer.inputs.rows), (left, layer.inputs.columns)
            runs.append(_move(ends, layer.inputs, box, source, turned))
            buffers.append(turned)
            source = turned
        runs.append(_lines(ends, layer, lines, source, written[axis]))
        top, left = (top + len(lines), left) if axis == "row" else (top, left + len(lines))
    for buffer in {b.name: b for b in written.values() if b is not target}.values():
        runs.append(_move(ends, layer.outputs, unordered, buffer, target))
        buffers.append(buffer)
    return [*buffers, target], runs


def _written(
    ends: Ends, layer: Layer, peels: Peels, target: Buffer
) -> tuple[dict[Axis, Buffer], PixelBox]:
    """Where rows and columns are written, one after the other from the bottom, and the pixels that
    are not in row-major order after that."""
    directions = [axis for axis, _ in groupby(peels, lambda line: line.axis)]
    pixels, name = layer.outputs, beside(layer.tensors, layer.target.name, "peeled")
    if directions == ["row"]:
        return {"row": target}, ((0, 0), (0, 0))
    if directions == ["row", "column"]:
        above = sum(line.axis == "row" for line in peels)
        base = above * (pixels.columns - 1) * pixels.each
        stride = (pixels.rows - above) * pixels.each
        columns = ends.strided(name, layer.target, base, pixels.each, stride)
        return {"row": target, "column": columns}, ((above, pixels.rows), (0, pixels.columns))
    peeled = ends.table(name, layer.target, ranks(*pixels[:2], peels) * pixels.each)
    return {"row": peeled, "column": peeled}, pixels.box


def _turned(ends: Ends, layer: Layer, top: int, left: int, facing: Axis, name: str) -> Buffer:
    """What is left of the input at the top of the arena, row after row or column after column."""
    height, width = layer.inputs.rows - top, layer.inputs.columns - left
    each = layer.inputs.each
    row, column = (width * each, each) if facing == "row" else (each, height * each)
    base = ends.nibbles - height * width * each - top * row - left * column
    return ends.strided(name, layer.source, base, row, column)


def _lines(ends: Ends, layer: Layer, lines: Peels, source: Buffer, target: Buffer) -> Run:
    """Neighbours of one direction, one after the other."""
    first, last = lines[0], lines[-1]
    across = (first.index, last.index + 1), (first.start, first.stop)
    by_rows = first.axis == "row"
    box = ends.box(layer.outputs, across if by_rows else (across[1], across[0]))
    sides = [range(stop - low)[:: -1 if ends.mirrored else 1] for low, stop in across]
    places = [(a, b) if by_rows else (b, a) for a in sides[0] for b in sides[1]]
    return layer.run(source, target, box, () if places == sorted(places) else places)


def _move(ends: Ends, pixels: Pixels, box: PixelBox, source: Buffer, target: Buffer) -> Turn:
    whole = (*ends.box(pixels, box), (0, pixels.channels))
    return Turn(source, target, ranges(whole))


def _packed(ends: Ends, tensor: Tensor, base: int) -> Buffer:
    pixels = Pixels.of(tensor)
    return ends.strided(tensor.name, tensor, base, pixels.columns * pixels.each, pixels.each)
