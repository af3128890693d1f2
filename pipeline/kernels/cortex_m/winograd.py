"""3x3 convolutions of stride 1 by Winograd's minimal filtering, in integers and exact.

F(m x m, 3 x 3) (Winograd 1980; Lavin & Gray, arXiv 1509.09308, equations 7 and 8) makes m x m
outputs of a tile of (m + 2) x (m + 2) inputs by (m + 2)**2 products instead of 9 * m**2: 36 for
144, or 16 for 36. Products are added up modulo 2**32; an output comes out 9 * 2**k times too large
(4 times where m is 2), and that is exact while 2**k times the true sum fits 32 bits.
"""

import numpy as np

from pipeline.graph.families import Weighted
from pipeline.graph.graph import Graph
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.tensor import IntArray
from pipeline.kernels.cortex_m.costs import Fitted
from pipeline.kernels.fast import convolution
from pipeline.kernels.form import Form
from pipeline.kernels.quick import endings, once_a_layer, quick_end
from pipeline.kernels.work import Counts

TOGETHER = 4
"""Tiles that are multiplied together, by two channels: their sums fill the registers."""

MOST_STEPS = 16
"""Pairs of channels in the code of the innermost loop."""

LIFT = 12_800
"""Added to the last four inputs of a tile of 6 x 6: no lower half of a word is negative then."""

LARGEST = {2: 1 << 29, 4: 1 << 25}
"""By m: a sum of stored inputs, from their least value on, times weights must be smaller."""

LIFTED = 1 << 29
"""By so much the four outputs of a tile that see ``LIFT``, with that."""

SPANS = (4, 8, 16, 32)
"""Tiles for which a pair of channels' weights are transformed once, where that is done as it
runs."""


class Winograd(Fitted):
    """Transformed weights lie in flash: eight times those of the layer where m is 4. If ``live``,
    they lie there as they are, and are transformed into scratch, two channels' at a time, once for
    each ``span`` of tiles."""

    word = "winograd"
    takes = (
        "3x3 convolutions of stride 1, padded by 1 at most, of whole tensors, two channels at a "
        "time, whose sums it can scale back exactly"
    )
    asked = True

    def __init__(self, cpu: str = "cortex-m4", span: int = 0) -> None:
        super().__init__(cpu)
        self.live, self.most_tiles = span > 0, span or TOGETHER
        self.code_bytes = 3700 if self.live else 2700

    @property
    def name(self) -> str:
        return super().name + f"_live{self.most_tiles}" * self.live

    def can(self, form: Form) -> bool:
        op = form.op
        if not isinstance(op, Conv2d) or op.groups > 1 or form.partial or form.overlaps:
            return False
        _, *kernel, _ = form.graph.tensors[op.parameters[0]].shape
        rows, columns, channels = form.target.shape
        return (
            (*kernel, *op.stride, *op.dilation) == (3, 3, 1, 1, 1, 1)
            and max(op.padding) < 2
            and min(rows, columns, channels) > 1
            and form.covers(op.output)
            and form.covers(op.inputs[0])
            and form.evenly_spaced(op.output)
            and form.in_one_piece(op.inputs[0])
            and outputs_of_a_side(op, form.graph) > 0
        )

    def counts(self, form: Form) -> Counts:
        """A step multiplies two channels of four tiles by those of two outputs."""
        op, channels = convolution(form), form.target.shape[2]
        side = outputs_of_a_side(op, form.graph)
        tiles, steps, pairs = self.tiles(form), pairs_of(form), -(-channels // 2)
        made = tiles * 2 * pairs
        size = "large" if side == 4 else "small"
        each = tiles // TOGETHER * pairs * (side + 2) ** 2
        weighed = self.live * -(-tiles // self.span(form)) * pairs * steps
        return {
            "step": each * steps,
            f"{size} tile of two pairs": tiles * steps // 2,
            "tile": tiles,
            f"{size} tile of an output": made,
            f"four {size} pairs of weights": weighed,
            **endings(op, form.graph, made * side * side),
        }

    def span(self, form: Form) -> int:
        """Tiles whose inputs are transformed and held at once."""
        return min(self.most_tiles, self.tiles(form))

    def tiles(self, form: Form) -> int:
        """Return a multiple of ``TOGETHER``, some of them made twice."""
        rows, columns, _ = form.target.shape
        return tiles_of(rows, columns, outputs_of_a_side(convolution(form), form.graph))

    def scratch_bytes(self, form: Form) -> int:
        """Inputs, 16 bits each, of all tiles of a span; sums of four tiles, two channels; weights
        of two channels where they are transformed as it runs."""
        pairs = pairs_of(form)
        words = pairs * self.span(form) + 2 * TOGETHER + 2 * pairs * self.live
        return 4 * words * (outputs_of_a_side(convolution(form), form.graph) + 2) ** 2

    def table_bytes(self, form: Form) -> float:
        side, channels = outputs_of_a_side(convolution(form), form.graph), form.target.shape[2]
        each = 9 if self.live else 2 * (side + 2) ** 2
        row = 32 if side == 4 else 16
        return channels * (2 * pairs_of(form) * each + row)

    def table_passes(self, form: Form, cached_bytes: int = 0) -> int:
        return -(-self.tiles(form) // (self.span(form) if self.live else TOGETHER))


def tiles_of(rows: int, columns: int, side: int) -> int:
    tiles = -(-rows // side) * -(-columns // side)
    return -(-tiles // TOGETHER) * TOGETHER


def pairs_of(form: Form) -> int:
    """Pairs of input channels: of every four the first and third, and the second and fourth."""
    return -(-form.source.shape[2] // 4) * 2


@once_a_layer
def outputs_of_a_side(op: Weighted, graph: Graph) -> int:
    """m: of those with which sums are exact the one that takes fewer products; 0: there is none."""
    assert isinstance(op, Conv2d)
    rows, columns, _ = graph.tensors[op.output].shape
    able = [m for m in (2, 4) if m <= min(rows, columns) and exact(op, graph, m)]
    return min(able, key=lambda m: (m + 2) ** 2 * tiles_of(rows, columns, m), default=0)


def exact(op: Conv2d, graph: Graph, side: int) -> bool:
    """Check whether no sum of the layer, whatever its input, is too large to be scaled back."""
    if quick_end(op, graph) is None:
        return False
    weights = graph.constants[op.parameters[0]].astype(np.int64)
    above = np.maximum(weights, 0).sum((1, 2, 3))
    below = above - weights.sum((1, 2, 3))
    reached = 256 * np.maximum(above, below)
    if reached.max() >= LARGEST[side]:
        return False
    return side == 2 or bool((reached[:, None] + LIFT * np.abs(lifted(weights)) < LIFTED).all())


def lifted(weights: IntArray) -> IntArray:
    """(channels, 4): sums of the weights by which ``LIFT`` is multiplied in outputs (2, 2), (2, 3),
    (3, 2) and (3, 3) of a tile.

    Args:
        weights: (channels, 3, 3, depth).
    """
    taps = weights.sum(3)
    corners = [(2, 2), (2, 1), (1, 2), (1, 1)]
    return np.stack([taps[:, y:, x:].sum((1, 2)) for y, x in corners], 1)
