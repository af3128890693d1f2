"""A tile, some columns of an image, as an image of its own: with as much padding as its windows
still reach beyond it. So kernels that make whole rows make those of tiles, too."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from pipeline.graph.graph import Graph
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.pool2d import Pool2d
from pipeline.graph.tensor import Box
from pipeline.kernels.quick import once_a_layer
from pipeline.kernels.taps import Tile, reached
from pipeline.plan.maps import Affine, Rows
from pipeline.plan.vocabulary import Buffer, Compute, Slice

Windowed = Conv2d | Pool2d


class Own(NamedTuple):
    """A step that makes all of its output from all of its input; ``buffers``: those that it names;
    ``graph``: of its one operator."""

    step: Compute
    buffers: Mapping[str, Buffer]
    graph: Graph


def own_image(step: Compute, buffers: Mapping[str, Buffer], graph: Graph) -> Own | None:
    """Return a step that makes a tile, all channels, from tensors that lie evenly, or whose rows
    do, as one on images of their own; None: others."""
    op = graph.operator(step.op)
    if step.partial or step.order or not isinstance(op, Windowed):
        return None
    given = next(p for p in step.ins if buffers[p.buffer].tensor == op.inputs[0])
    made, read = _box(step.out, buffers), _box(given, buffers)
    if made is None or read is None or made[1] == (0, buffers[step.out.buffer].shape[1]):
        return None
    alone = _alone(op, graph, made, read)
    if alone is None:
        return None
    found = {name: buffers[name] for name in (p.buffer for p in step.ins) if name != given.buffer}
    found |= {name: buffers[name] for name in step.scratch if name in buffers}
    pieces = {}
    for piece, box in ((step.out, made), (given, read)):
        own = _own(buffers[piece.buffer], box)
        found[own.name], pieces[piece] = own, Slice(own.name, (0, 0, 0), own.shape)
    ins = tuple(pieces.get(piece, piece) for piece in step.ins)
    return Own(replace(step, out=pieces[step.out], ins=ins), found, alone)


def _box(piece: Slice, buffers: Mapping[str, Buffer]) -> Box | None:
    """Return the box of its tensor that a piece is; None where that moves, or lies otherwise than
    evenly, or is not of all channels."""
    buffer = buffers[piece.buffer]
    place = buffer.map
    if not isinstance(place, Rows | Affine) or len(buffer.shape) != 3:
        return None
    if buffer.copies > 1 or buffer.role != "activation":
        return None
    found = []
    parts = zip(piece.lo, piece.size, buffer.shape, buffer.wrap, strict=True)
    for low, size, extent, ring in parts:
        if not isinstance(low, int):
            return None
        first, stop = max(low, 0), min(low + size, extent)
        if ring and first % ring + stop - first > ring:  # it goes around
            return None
        found.append((first, stop))
    return tuple(found) if found[2] == (0, buffer.shape[2]) else None


@lru_cache(maxsize=4096)
def _own(buffer: Buffer, box: Box) -> Buffer:
    place, lows = buffer.map, [low for low, _ in box]
    assert isinstance(place, Affine | Rows)
    name = f"{buffer.name}{[list(side) for side in box[:2]]}"
    shape = tuple(stop - low for low, stop in box)
    if isinstance(place, Affine):
        lows = [n % ring if ring else n for n, ring in zip(lows, place.rings, strict=True)]
        base = place.base + sum(n * low for n, low in zip(place.strides, lows, strict=True))
        return replace(buffer, name=name, shape=shape, map=Affine(base, place.strides))
    begin = sum(n * low for n, low in zip(place.strides, lows[1:], strict=True))
    cells = tuple(cell + begin for cell in place.cells[slice(*box[0])])
    return replace(buffer, name=name, shape=shape, map=Rows(cells, place.strides))


def _alone(op: Windowed, graph: Graph, made: Box, read: Box) -> Graph | None:
    """``op`` on tensors that are no larger than the tiles; None where it would read beyond what a
    step is given, or less."""
    kernel, ends = op.window(graph.tensors), list[int]()
    for axis in range(2):
        (first, stop), (low, high) = made[axis], read[axis]
        begin = first * op.stride[axis] - op.padding[2 * axis]
        reach = (kernel[axis] - 1) * op.dilation[axis] + 1
        end = begin + (stop - first - 1) * op.stride[axis] + reach
        ends += [low - begin, end - high]
    if min(ends) < 0:
        return None
    sizes = (tuple(stop - low for low, stop in box) for box in (made, read))
    return _tile(op, graph, (ends[0], ends[1], ends[2], ends[3]), *sizes)


@once_a_layer
def _tile(
    op: Windowed, graph: Graph, padding: tuple[int, int, int, int], made: tuple[int, ...],
    read: tuple[int, ...],
) -> Graph:  # fmt: skip
    tensors = {n: graph.tensors[n] for n in (*op.inputs, *op.parameters, op.output)}
    for name, shape in ((op.inputs[0], read), (op.output, made)):
        tensors[name] = replace(tensors[name], shape=shape)
    return Tile(
        graph.name, tensors, (replace(op, padding=padding),),
        {n: graph.constants[n] for n in op.parameters}, (op.inputs[0],),
        (op.output,), taps=reached(op, graph) if isinstance(op, Conv2d) else (),
    )  # fmt: skip
