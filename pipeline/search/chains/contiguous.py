"""Layout ``contiguous``: the paper's. Outputs grow from one end while inputs die at the other.

Inputs lie at the top of the arena and outputs at the bottom. Before a column is peeled, what is
left of the input is transposed in place (section 4.1), so that it dies from its lower end as it
does when rows are peeled. In the end an in-place permutation brings the outputs into row-major
order (section 4.2). Layers alternate between the ends: every other one runs mirrored.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from math import lcm

import numpy as np

from pipeline.graph.tensor import IntArray, Tensor, beside
from pipeline.placement.blocks import WORD, round_up
from pipeline.plan.vocabulary import Affine, Buffer
from pipeline.schedules.bounds import ranges
from pipeline.schedules.traversed import Run, Traversed, Turn
from pipeline.search.chains.cells import buffer, in_one_piece
from pipeline.search.chains.traversals import Axis, Peels, ranks
from pipeline.search.view.pixels import Layer, PixelBox, Pixels, read_at

Traversal = tuple[Layer, Peels, bool]
"""A layer, the order its output pixels are computed in, and whether it runs mirrored."""


def needed_nibbles(layer: Layer, peels: Peels, mirrored: bool = False) -> int:
    """The smallest arena: outputs never reach the lowest input that is still to be read.

    A pixel's outputs are written while the inputs that die with it still count (section 3.2).
    """
    given, made = layer.inputs, layer.outputs
    axes = {line.axis for line in peels}
    if len(axes) == 2:
        # of a peelable layer: the rest of the input is a rectangle, kept in the direction of the
        # peel, of which every pixel kills the next one of that side
        height, width, gone = given.rows, given.columns, list[IntArray]()
        for line in peels:
            gone.append(given.number - height * width + np.arange(len(line.along)))
            height, width = (height - 1, width) if line.axis == "row" else (height, width - 1)
        dead = np.concatenate(gone)
    else:
        turn = -1 if mirrored else 1
        order = ranks(*made[:2], peels)[::turn, ::turn]
        last = read_at(layer.op, layer.operand, layer.tensors, order)[::turn, ::turn]
        last = last.T if axes == {"column"} else last  # the input lies as it is gone through
        dead = np.searchsorted(np.maximum.accumulate(last.reshape(-1)), np.arange(made.number))
    written = np.arange(1, made.number + 1) * made.each
    return int((written - dead * given.each).max()) + given.total


def arrange(start: Tensor, beside: int, chain: Sequence[Traversal]) -> Traversed:
    """Lay the chain out from end to end so that the last output lies at the bottom: every other
    layer runs mirrored, but not the last."""
    first, needs, tops = Pixels.of(start), [0], [1]
    for layer, peels, turn in chain:
        needs.append(needed_nibbles(layer, peels, turn))
        tops.append((layer.outputs if turn else layer.inputs).nibbles_per_element)
    above = 0 if len(chain) % 2 else round_up(first.total, WORD) if beside else first.total
    nibbles = round_up(max(first.total + beside, above + beside, *needs), lcm(*tops))
    ends = Ends(nibbles, len(chain) % 2 == 0)
    buffers, runs = [ends.packed(start, nibbles - first.total)], list[Run | Turn]()
    for layer, peels, turn in chain:
        Ends(nibbles, turn).lay(layer, peels, buffers, runs)
    return Traversed(tuple(buffers), tuple(runs), nibbles, above)


@dataclass(frozen=True)
class Ends:
    """Real places of what is described with inputs at the top, dying from the top left on.

    ``mirrored`` exchanges the ends of the arena and turns every image by 180 degrees; the channels
    of a pixel keep their order.
    """

    nibbles: int
    mirrored: bool

    def lay(
        self, layer: Layer, peels: Peels, buffers: list[Buffer], runs: list[Run | Turn]
    ) -> None:
        """Adds what one layer takes; the last buffer is what it reads, and then its output, both
        row-major."""
        source, given, made = buffers[-1], layer.inputs, layer.outputs
        target, above = self.packed(layer.target, 0), len(buffers)
        if layer.fit_beside(self.nibbles):
            whole = (0, made.rows), (0, made.columns), (0, made.channels)
            runs.append(Run.of(layer.op, (source,), target, whole))
            buffers.append(target)
            return
        written, unordered = self._written(layer, peels, target)
        top, left, facing = 0, 0, "row"
        for axis, group in groupby(peels, lambda line: line.axis):
            lines = tuple(group)
            if axis != facing:
                # what is left of the input, at the top, row after row or column after column
                facing, rest = axis, ((top, given.rows), (left, given.columns))
                high, wide = (given.rows - top) * given.each, (given.columns - left) * given.each
                row, column = (wide, given.each) if facing == "row" else (given.each, high)
                base = self.nibbles - high * (given.columns - left) - top * row - left * column
                name = beside(layer.tensors, source.tensor, f"{len(buffers) - above + 1}")
                turned = self._strided(name, layer.source, base, row, column)
                runs.append(self._move(given, rest, source, turned))
                buffers.append(turned)
                source = turned
            runs.append(self._lines(layer, lines, source, written[axis]))
            top, left = (top + len(lines), left) if axis == "row" else (top, left + len(lines))
        if unordered:
            peeled = written["column"]
            runs.append(self._move(made, unordered, peeled, target))
            buffers.append(peeled)
        buffers.append(target)

    def _written(
        self, layer: Layer, peels: Peels, target: Buffer
    ) -> tuple[dict[Axis, Buffer], PixelBox | None]:
        """Where rows and columns are written, one after the other from the bottom, and the pixels
        that are not in row-major order after that."""
        directions = [axis for axis, _ in groupby(peels, lambda line: line.axis)]
        pixels, name = layer.outputs, beside(layer.tensors, layer.target.name, "peeled")
        if directions == ["row"]:
            return {"row": target}, None
        if directions == ["row", "column"]:
            above = sum(line.axis == "row" for line in peels)
            base = above * (pixels.columns - 1) * pixels.each
            stride = (pixels.rows - above) * pixels.each
            columns = self._strided(name, layer.target, base, pixels.each, stride)
            return {"row": target, "column": columns}, ((above, pixels.rows), (0, pixels.columns))
        base, place = 0, ranks(*pixels[:2], peels).reshape(-1)
        if self.mirrored:
            base, place = self.nibbles - pixels.each, -place[::-1]
        peeled = buffer(layer.target, in_one_piece(layer.target, base, place), name)
        return {"row": peeled, "column": peeled}, ((0, pixels.rows), (0, pixels.columns))

    def _lines(self, layer: Layer, lines: Peels, source: Buffer, target: Buffer) -> Run:
        """Neighbours of one direction, one after the other."""
        first, last = lines[0], lines[-1]
        across = (first.at, last.at + 1), (first.along.start, first.along.stop)
        by_rows = first.axis == "row"
        box = self._box(layer.outputs, across if by_rows else (across[1], across[0]))
        sides = [range(stop - low)[:: -1 if self.mirrored else 1] for low, stop in across]
        places = [(a, b) if by_rows else (b, a) for a in sides[0] for b in sides[1]]
        order = () if places == sorted(places) else places
        return Run.of(layer.op, (source,), target, (*box, (0, layer.outputs.channels)), order)

    def _move(self, pixels: Pixels, box: PixelBox, source: Buffer, target: Buffer) -> Turn:
        return Turn(source, target, ranges((*self._box(pixels, box), (0, pixels.channels))))

    def packed(self, tensor: Tensor, base: int) -> Buffer:
        pixels = Pixels.of(tensor)
        return self._strided(tensor.name, tensor, base, pixels.columns * pixels.each, pixels.each)

    def _strided(self, name: str, tensor: Tensor, base: int, row: int, column: int) -> Buffer:
        """Pixel (y, x) at ``base + y * row + x * column``."""
        pixels = Pixels.of(tensor)
        if self.mirrored:
            ahead = (pixels.rows - 1) * row + (pixels.columns - 1) * column
            base = self.nibbles - pixels.each - base - ahead
        strides = (row, column, pixels.nibbles_per_element)
        address = Affine(base, (column,) if len(tensor.shape) == 1 else strides)
        return Buffer(name, tensor.name, "", tensor.shape, tensor.dtype.bits, address)

    def _box(self, pixels: Pixels, box: PixelBox) -> PixelBox:
        if not self.mirrored:
            return box
        (top, bottom), (left, right) = box
        return (
            (pixels.rows - bottom, pixels.rows - top),
            (pixels.columns - right, pixels.columns - left),
        )
