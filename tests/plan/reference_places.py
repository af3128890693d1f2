"""Places of elements, evaluated one number at a time from what ``vocabulary.py`` says in words, and
what an output element is made of, atom by atom, from the operators' declarations.

Part of the reference verifier (``reference.py``): nothing here uses a method of a plan's classes.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from math import prod

from pipeline.graph.access import Operand, Term
from pipeline.graph.tensor import Box
from pipeline.plan.vocabulary import Affine, Blocks, Buffer, Index, Loop, Rows, Slice, Step

Env = dict[str, int]
Place = tuple[int, ...]
Cell = tuple[str, int]
"""A memory and a nibble of it."""


Given = Mapping[str, Box]
"""The part of each tensor that is at hand; of others, nothing."""


class Wrong(Exception):
    """A plan that the reference refuses, and why."""


def number(index: Index, env: Env) -> int:
    if isinstance(index, int):
        return index
    total = index.const
    for variable, factor in index.coef:
        if variable not in env:
            raise Wrong(f"no loop counts {variable}")
        total += factor * env[variable]
    return total


def unrolled(steps: tuple[Step, ...], env: Env) -> Iterator[tuple[Step, Env]]:
    for step in steps:
        if not isinstance(step, Loop):
            yield step, env
            continue
        for n in range(step.count):
            yield from unrolled(step.body, {**env, step.var: n})


def box_of(piece: Slice, shape: Place, env: Env) -> Box:
    """The indices of a slice that its tensor has; an axis without any is (0, 0)."""
    if not len(piece.lo) == len(piece.size) == len(shape):
        raise Wrong(f"a slice of {piece.buffer} has another number of axes")
    ranges = []
    for low, size, extent in zip(piece.lo, piece.size, shape, strict=True):
        inside = [i for i in range(extent) if number(low, env) <= i < number(low, env) + size]
        ranges.append((inside[0], inside[-1] + 1) if inside else (0, 0))
    return tuple(ranges)


def places(box: Box) -> Iterator[Place]:
    """Every index in ``box``, row-major."""
    return product(*(range(start, stop) for start, stop in box))


def ordinal(place: Place, shape: Place) -> int:
    """The row-major number of an element of a tensor of ``shape``."""
    total = 0
    for i, extent in zip(place, shape, strict=True):
        total = total * extent + i
    return total


def nibbles(buffer: Buffer, copy: int, place: Place) -> range:
    """The nibbles of one element in the buffer's place number ``copy``, modulo their number."""
    if isinstance(buffer.map, Affine):
        for i, (first, stop) in zip(place, buffer.map.held, strict=bool(buffer.map.held)):
            if not first <= i < stop:
                raise Wrong(f"{buffer.name} does not hold {place}")
        wrap = buffer.map.wrap or (0,) * len(place)
        first = buffer.map.base
        for i, stride, ring in zip(place, buffer.map.strides, wrap, strict=True):
            first += stride * (i % ring if ring else i)
    elif isinstance(buffer.map, Rows):
        first = buffer.map.cells[place[0]]
        for i, stride in zip(place[1:], buffer.map.strides, strict=True):
            first += stride * i
    elif isinstance(buffer.map, Blocks):
        row, column, channel = place
        _, columns, channels = buffer.shape
        before = [x for x in range(columns) if x // buffer.map.pixels < column // buffer.map.pixels]
        block = [x for x in range(columns) if x // buffer.map.pixels == column // buffer.map.pixels]
        number = len(before) * channels + channel * len(block) + block.index(column)
        first = buffer.map.cells[row] + buffer.map.width * number
    else:
        first = buffer.map.cells[ordinal(place, buffer.shape)]
    first += (copy % buffer.copies) * buffer.copy_stride
    return range(first, first + buffer.bits // 4)


def inside_memory(buffer: Buffer, size_bytes: int) -> bool:
    """Every element of every copy lies in the memory, on bytes unless it is smaller than one."""
    for copy in range(buffer.copies):
        part = isinstance(buffer.map, Affine) and buffer.map.held
        for place in places(part or tuple((0, extent) for extent in buffer.shape)):
            cells = nibbles(buffer, copy, place)
            if cells[0] < 0 or cells[-1] >= 2 * size_bytes or (len(cells) > 1 and cells[0] % 2):
                return False
    return True


def units(box: Box, unit: Place, order: tuple[Place, ...]) -> list[list[Place]]:
    """The elements of ``box``, unit by unit in the order in which they are computed."""
    extents = tuple(stop - start for start, stop in box)
    block = unit or (1,) * len(box)
    if len(block) != len(box) or min(block) < 1:
        raise Wrong(f"units of {unit} for {len(box)} axes")
    grid = list(product(*(range(0, e, b) for e, b in zip(extents, block, strict=True))))
    if order and sorted(order) != grid:
        raise Wrong("the order does not name every unit once")
    result = []
    for origin in order or grid:
        ranges = tuple(
            (start + o, min(start + o + b, stop))
            for (start, stop), o, b in zip(box, origin, block, strict=True)
        )
        result.append(list(places(ranges)))
    assert sum(map(len, result)) == prod(extents)
    return result


def window(operand: Operand, place: Place) -> Iterator[Place]:
    """The elements that the output at ``place`` reads, padding included, in the atoms' order."""
    lines = []
    for axis in operand.windows:
        first = 0 if axis.axis is None else place[axis.axis] // axis.divide * axis.stride
        lines.append([first + axis.offset + t * axis.dilation for t in range(axis.count)])
    return product(*lines)


def within(place: Place, box: Box) -> bool:
    return all(start <= i < stop for i, (start, stop) in zip(place, box, strict=True))


def has(given: Given, tensor: str, place: Place) -> bool:
    return tensor in given and within(place, given[tensor])


def atoms(terms: tuple[Term, ...], place: Place, given: Given) -> frozenset[tuple[int, int]]:
    """(term, atom) of the output at ``place`` whose operands' elements are all at hand."""
    found = set()
    for t, term in enumerate(terms):
        met = zip(*(window(operand, place) for operand in term.operands), strict=True)
        for a, elements in enumerate(met):
            pairs = zip(term.operands, elements, strict=True)
            if all(has(given, operand.tensor, element) for operand, element in pairs):
                found.add((t, a))
    return frozenset(found)
