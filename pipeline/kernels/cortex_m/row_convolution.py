"""Convolutions of a row, from rows that lie anywhere: channels last, or in blocks of pixels,
channel by channel. Windows of up to four pixels are widened, then all channels are made of them."""

from collections.abc import Callable, Hashable
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache
from itertools import groupby
from typing import ClassVar, NamedTuple

from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.by_row import BLOCK, AccessOrder, RowKernel, RowLayout
from pipeline.kernels.cortex_m.costs import Fitted
from pipeline.kernels.fast import pairs, unrolled
from pipeline.kernels.form import Form
from pipeline.kernels.quick import endings, quick_end
from pipeline.kernels.taps import Rows
from pipeline.kernels.work import Counts, made, positions

MOST_WIDE = 32
"""Columns that are widened all together."""

MOST_LINE = 256
"""Bytes of a window that are copied to the stack."""

MOST_FUSED = 40
"""Pixels times words of a window in the code of the innermost loops, of all pixels."""

MOST_HELD, PASS_BYTES = 9, 1030
"""Words of a window in the code of a round that a kilobyte of instruction cache holds with what is
around it; and the code that a pass of more reads anew: LeNet-5's windows of five columns."""

PAIRS = {4: 1, 3: 1, 2: 2, 1: 4}
"""Pairs of output channels, by how many pixels are made together: sums fill the registers."""

FARTHEST = 4095
"""Bytes from an address that a load reaches."""


class Layer(NamedTuple):
    """A convolution, the rows and columns of its kernel that are read, and how rows lie."""

    op: Conv2d
    some: Rows
    given: RowLayout
    goal: RowLayout


@dataclass(frozen=True)
class Source:
    """Windows of some pixels, side by side.

    Attributes:
        parts: pixels that are made together, in the order in which they are made.
        most: groups of ``taps`` in the code of the innermost loop: with what is around it a
            kilobyte of instruction cache holds no more.
        taps: words of a window that lie side by side, and are multiplied in one round.
        across: columns of the input that are widened at a time, if neighbours share them; ``lead``:
            those of them on the left that lie outside or, of a later part, are kept.
        line: windows are gathered one by one, from rows with channels last.
        first: all columns are widened before anything is made; ``fused``: then two channels of
            all pixels are made at a time.
    """

    layer: Layer
    parts: tuple[range, ...]
    _: KW_ONLY
    most: int
    taps: int = 1
    across: int = 0
    lead: int = 0
    line: bool = False
    first: bool = False
    fused: bool = False

    @property
    def groups(self) -> int:
        """Count groups of ``taps`` in a window."""
        some = self.layer.some
        return 2 * some.words if self.line else len(some.rows) * pairs(some.channels)

    @property
    def unroll(self) -> int:
        """Return how many groups a round of the innermost loop takes."""
        return unrolled(self.groups, self.most)

    @property
    def columns(self) -> int:
        """Count what lies beside each other: columns, or pixels."""
        return self.across or max(map(len, self.parts))

    def reads(self, part: range) -> range:
        """Columns that are widened for a part."""
        op, some, given, _ = self.layer
        stride, taps = op.stride[1], some.columns
        low = part.start * stride - op.padding[2] + taps.start
        stop = min(low + (len(part) - 1) * stride + len(taps), given.columns)
        low = max(0, low + self.lead * (part.start > 0))
        return range(low, stop, stride if len(taps) == 1 else 1)

    def at_once(self, part: range) -> int:
        """Pairs of output channels that are made together."""
        found, window = 1 if self.fused else PAIRS[len(part)], 4 * self.groups * self.taps
        channels = self.layer.goal.channels
        while found > 1 and (channels % (2 * found) or (found - 1) * window > FARTHEST):
            found //= 2
        return found


def image(layer: Layer) -> Source | None:
    """Few channels, side by side: windows are copied to a line of bytes first."""
    op, some, given, goal = layer
    several = len(some.rows) * len(some.columns) > 1
    if given.pixels > 1 or op.dilation[1] > 1 or not several or some.size > MOST_LINE:
        return None
    return Source(layer, parts(goal), most=6, line=True)


def blocks(layer: Layer) -> Source | None:
    """Pixel by pixel, from the last ones on where the output has more channels, so that it may lie
    over its input; or three columns wide, where each column is widened once for four pixels."""
    op, some, given, goal = layer
    stride, pad, taps = op.stride[1], op.padding[2], len(some.columns)
    every = parts(goal, given, stride)
    if given.blocked and len(some.rows) * taps == 1 and not any(op.padding[2:]):
        return Source(layer, every[:: -1 if goal.bytes > given.bytes else 1], most=8)
    even = goal.columns % BLOCK == 0 and given.columns == stride * goal.columns
    known = (stride, pad) in ((1, 1), (2, 0), (2, 1)) and op.dilation[1] == 1
    if taps != 3 or given.pixels != BLOCK or not even or not known:
        return None
    across = (BLOCK - 1) * stride + taps
    return Source(layer, every, most=3, taps=taps, across=across, lead=pad)


def whole(layer: Layer) -> Source | None:
    """Return all columns that lie inside for some pixel, and those beside them."""
    op, some, given, goal = layer
    if not given.blocked or given.columns > MOST_WIDE:
        return None
    taps, apart, pad = some.columns, op.dilation[1], op.padding[2]
    lead = max(0, pad - taps[0] * apart)
    right = (goal.columns - 1) * op.stride[1] - pad + taps[-1] * apart + 1
    across = lead + max(given.columns, right)
    return Source(
        layer, parts(goal), most=3, taps=len(taps), across=across, lead=lead, first=True
    )  # fmt: skip


def fused(layer: Layer) -> Source | None:
    """Make two channels of all pixels at a time."""
    found, (op, some, given, _) = whole(layer), layer
    plain = (op.stride[1], *op.padding[2:]) == (1, 0, 0) and some.size == given.channels
    if found is None or not plain or not given.plane or given.columns <= BLOCK:
        return None
    return replace(found, most=MOST_FUSED // given.columns, fused=True)


class RowConvolution(Fitted, RowKernel):
    """Convolution of one group, with two output channels or more."""

    word = "row_conv2d"
    takes = (
        "convolutions of one group that make one row, two or more channels, from rows with "
        f"channels last, windows of several pixels and up to {MOST_LINE} elements; or from rows in "
        f"blocks, of up to {MOST_WIDE} columns or for windows of one column, or of three"
    )
    sources: ClassVar[tuple[Callable[[Layer], Source | None], ...]] = (image, blocks, whole)
    """Those that need least scratch first."""

    def source(self, form: Form) -> Source | None:
        """Return what windows are made of; None: it does not take ``form``."""
        op, found = form.op, self.rows(form)
        if not isinstance(op, Conv2d) or op.groups > 1 or found is None:
            return None
        some, (given, goal) = Rows.of(op, form.graph), found
        able = goal.channels > 1 and (goal.blocked or goal.pixels == 1) and some.size
        if not able or quick_end(op, form.graph) is None:
            return None
        some = some._replace(rows=range(positions(form)[0]), by_tap=False)
        every = (source(Layer(op, some, given, goal)) for source in type(self).sources)
        return next(filter(None, every), None)

    def can(self, form: Form) -> bool:
        return self.source(form) is not None

    def taken(self, form: Form) -> Source:
        """``source`` of a form that it takes."""
        found = self.source(form)
        assert found is not None
        return found

    def scratch_bytes(self, form: Form) -> int:
        source = self.taken(form)
        return 4 * source.groups * source.columns

    def counts(self, form: Form) -> Counts:
        source, (_, columns, channels) = self.taken(form), form.target.shape
        some, every, two = source.layer.some, source.parts, pairs(channels)
        window, odd = source.groups * source.taps * two, sum(len(part) % 2 for part in every)
        rounds = sum(-(-two // source.at_once(part)) for part in every)
        times = 1 if source.first else columns / max(map(len, every))
        lines = columns * some.number * source.line
        return {
            "word of a pair of channels": len(every) * window,
            "word of a pixel and a pair": columns * window,
            "the same, of an odd number of pixels": odd * window,
            "round": rounds * (source.groups // source.unroll),
            "output": columns * channels,
            "word of windows": source.groups * source.columns * times * (not source.line),
            "line": lines,
            "word of a line": lines * (some.elements // 4),
            "element of a line": lines * (some.elements % 4),
            **endings(source.layer.op, form.graph, made(form)),
        }

    def loop_bytes(self, form: Form) -> int:
        source, two = self.taken(form), pairs(form.target.shape[2])
        passes = sum(-(-two // source.at_once(part)) for part in source.parts)
        return PASS_BYTES * passes * (source.unroll * source.taps > MOST_HELD)

    def table_passes(self, form: Form, cached_bytes: int = 0) -> int:
        """Once if fused, where a cache holds a pair's weights until the last pixels need them;
        beside them and the table of what ends the sums half of it has room for little else."""
        source = self.taken(form)
        kept = source.fused and 4 * source.groups <= cached_bytes // 2
        return 1 if kept else len(source.parts)

    def access_order(self, form: Form) -> AccessOrder:
        """Part by part; what the part before has widened is not read again."""
        source = self.taken(form)
        _, _, given, goal = source.layer
        if source.first:
            return AccessOrder.of(given, goal, [(0, range(given.columns), ())])
        stages = ((n, source.reads(part), part) for n, part in enumerate(source.parts))
        return AccessOrder.of(given, goal, stages)


class RowFused(RowConvolution):
    """Two channels of all pixels at a time, so that weights are read from flash once a row. That is
    slower where flash has no waits, but for few channels, or where a cache loses them meanwhile.
    """

    word = "row_fused"
    priced = "row_conv2d"
    takes = (
        "1x1 convolutions of one group that make one row, two or more channels, from rows in one "
        f"block of more than {BLOCK} pixels, on boards whose flash has waits"
    )
    sources = (fused,)


@cache
def parts(target: RowLayout, source: RowLayout | None = None, stride: int = 1) -> tuple[range, ...]:
    """Up to four pixels each, one of a channel as far from the next as the others, where they go
    and, in blocks of ``source``, where they come from."""

    def like(column: int) -> Hashable:
        block = source and not source.plane and stride == 1 and column // BLOCK
        return target.apart(column), source and source.apart(column * stride), block

    found = list[range]()
    for _, same in groupby(range(target.columns), like):
        left = list(same)
        while left:
            count = 3 if len(left) == BLOCK + 1 else BLOCK  # 3 and 2 rather than 4 and 1
            found.append(range(left[0], left[:count][-1] + 1))
            left = left[count:]
    return tuple(found)
