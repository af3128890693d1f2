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
from pipeline.plan.vocabulary import Buffer
from pipeline.schedules.bounds import Box, ranges
from pipeline.schedules.traversed import Run, Traversed, Turn
from pipeline.search.chains.cells import at, lying
from pipeline.search.chains.traversals import Peels, in_turn, peel, ranks
from pipeline.search.view.pixels import Layer, Pixels, read_at

Traversal = tuple[Layer, Peels, bool]
"""A layer, the order its output pixels are computed in, and whether it runs mirrored."""


def needed_nibbles(layer: Layer, peels: Peels, mirrored: bool = False) -> int:
    """Return the smallest arena: outputs never reach the lowest input that is still to be read.

    A pixel's outputs are written while the inputs that die with it still count (section 3.2).
    """
    given, made, turn = layer.inputs, layer.outputs, -1 if mirrored else 1
    order = ranks(*made[:2], peels)[::turn, ::turn]
    last = read_at(layer.op, layer.operand, layer.tensors, order)[::turn, ::turn]
    axes = [line.axis for line in peels]  # the input lies as it is gone through
    lies = in_turn(peel(*given[:2], lambda top, left: axes[min(top + left, len(axes) - 1)]))
    most = np.maximum.accumulate(last[tuple(lies.T)])
    dead = np.searchsorted(most, np.arange(made.number))
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
    buffers, runs = [at(start, nibbles - first.total if len(chain) % 2 else 0)], list[Run | Turn]()
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
        target = at(layer.target, self.nibbles - made.total if self.mirrored else 0)
        if layer.fit_beside(self.nibbles):
            runs.append(Run(layer.op, (source,), target, ranges(target.box)))
            buffers.append(target)
            return
        peeled, above = self._peeled(layer, peels)
        top, left, facing, number = 0, 0, "row", len(buffers)
        for axis, group in groupby(peels, lambda line: line.axis):
            lines = tuple(group)
            if axis != facing:
                # what is left of the input, at the top, row after row or column after column
                facing, high, wide = axis, given.rows - top, given.columns - left
                row, column = (wide, 1) if facing == "row" else (1, high)
                place = np.add.outer(
                    (np.arange(given.rows) - top) * row, (np.arange(given.columns) - left) * column
                )
                name = beside(layer.tensors, source.tensor, f"{len(buffers) - number + 1}")
                base = self.nibbles - high * wide * given.each
                turned = self._laid(layer.source, base, place, name)
                runs.append(Turn(source, turned, self._rest(given, top, left)))
                buffers.append(turned)
                source = turned
            pixels = in_turn(lines)
            if self.mirrored:
                pixels = np.array(made[:2]) - 1 - pixels
            to = target if axis == "row" and above else peeled
            runs.append(Run.of(layer.op, (source,), to, pixels, (0, made.channels)))
            top, left = (top + len(lines), left) if axis == "row" else (top, left + len(lines))
        if above < made.rows:
            runs.append(Turn(peeled, target, self._rest(made, above, 0)))
            buffers.append(peeled)
        buffers.append(target)

    def _peeled(self, layer: Layer, peels: Peels) -> tuple[Buffer, int]:
        """Place rows and columns as written, one after the other from the bottom; also return how
        many rows before all columns are in row-major order with that."""
        (rows, columns), above = layer.outputs[:2], 0
        if "row" in [axis for axis, _ in groupby(peels, lambda line: line.axis)][1:]:
            place = ranks(rows, columns, peels)
        else:
            above = sum(line.axis == "row" for line in peels)
            down = np.arange(rows) + above * (columns - 1)
            place = np.add.outer(down, np.arange(columns) * (rows - above))
        name = beside(layer.tensors, layer.target.name, "peeled")
        return self._laid(layer.target, 0, place, name), above

    def _laid(self, tensor: Tensor, base: int, place: IntArray, name: str) -> Buffer:
        """Pixel (y, x) as number ``place[y, x]`` from ``base``."""
        each = Pixels.of(tensor).each
        if self.mirrored:
            base, place = self.nibbles - each - base, -place[::-1, ::-1]
        return lying(tensor, (base + place.reshape(-1) * each).tolist(), name)

    def _rest(self, pixels: Pixels, top: int, left: int) -> Box:
        """Return the box of an image that is left when so many rows and columns are gone."""
        high, wide = pixels.rows - top, pixels.columns - left
        y, x = (0, 0) if self.mirrored else (top, left)
        return ranges(((y, y + high), (x, x + wide), (0, pixels.channels)))
