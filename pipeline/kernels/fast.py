"""Base of all sets' fast kernels: those written for a core."""

from abc import abstractmethod
from typing import ClassVar

from pipeline.graph.operators.conv2d import Conv2d, Dense
from pipeline.kernels.form import Form
from pipeline.kernels.kernel import Kernel
from pipeline.kernels.quick import quick_end
from pipeline.kernels.safe_offset import SafeOffset
from pipeline.kernels.work import Counts, priced


class Fast(Kernel):
    """Kernel for a step whose inputs and output have elements of 8 bits.

    Attributes:
        core: its set's name; ``word``: its own in that.
        takes: what it is for, to say why it is not for something else.
        costs: its prices, where it is for one core.
        of_windows: weights lie in windows.
    """

    core: ClassVar[str]
    word: ClassVar[str]
    takes: ClassVar[str]
    costs: ClassVar[Counts]
    of_windows: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return f"{self.core}.{self.word}"

    def why_not(self, form: Form) -> str:
        if not self.of_windows and any(name in form.parts for name in form.op.parameters):
            return f"{self.name} reads weights in an order of its own, which no window has"
        narrow = all(form.graph.tensors[name].dtype.bits == 8 for name in form.parts)
        return "" if narrow and self.can(form) else f"{self.name} is for {self.takes}"

    @abstractmethod
    def can(self, form: Form) -> bool:
        """Check whether it computes ``form``, all elements of which have 8 bits."""

    @abstractmethod
    def counts(self, form: Form) -> Counts:
        """Count what it does for ``form``, in the words of ``prices``."""

    def prices(self) -> Counts:
        """Cycles of what it does, without flash waits."""
        return self.costs

    def cycles(self, form: Form) -> float:
        return priced(self.counts(form), self.prices())


class FastDense(Fast):
    """A whole dense layer, anywhere over its input: that is widened, or copied, before anything is
    written. ``anywhere``: so may their elements lie."""

    word = "dense"
    anywhere: ClassVar[bool] = False

    def can(self, form: Form) -> bool:
        return (
            isinstance(form.op, Dense)
            and not form.partial
            and all(
                form.covers(name)
                and (form.in_one_piece(name) or (self.anywhere and part.spread == "table"))
                for name, part in form.parts.items()
            )
        )

    def unit(self, form: Form) -> tuple[int, ...]:
        return form.out.extents

    def overlap(self, form: Form, tensor: str) -> SafeOffset | None:
        return SafeOffset(2 * form.source.size) if self.accepts(form) else None


def in_rows(form: Form) -> bool:
    """Rows of an image, all pixels of each; all channels or, in each pass of a loop, equally many
    from a multiple of that on: in a last pass there may be fewer."""
    name = form.op.output
    return (
        len(form.target.shape) == 3
        and not form.partial
        and form.covers(name, slice(1, 2))
        and form.out.multiples[2]
        and form.in_rows(name)
    )


def in_place(form: Form) -> bool:
    """Check whether an image begins where the one that it is made of does, and no pixel lies
    further on than the one of the same number there."""
    name = form.op.inputs[0]
    return (
        form.in_place
        and form.overlaps == {name}
        and form.source.shape[1] >= form.target.shape[1]
        and form.source.shape[2] == form.target.shape[2]
        and form.evenly_spaced(name)
        and form.evenly_spaced(form.op.output)
        and form.given.extents[2] == form.out.extents[2]
        and form.given.strides[1:] == form.out.strides[1:]
    )


def convolution(form: Form) -> Conv2d:
    assert isinstance(form.op, Conv2d)
    return form.op


def in_passes(form: Form, step: int) -> bool:
    """Check whether passes make rows, see ``in_rows``, of ``step`` channels or more each, which end
    quickly where they aren't all."""
    channels, at_once = form.target.shape[-1], form.out.extents[-1]
    if not in_rows(form):
        return False
    last = channels - (channels - 1) // at_once * at_once
    quick = at_once == channels or quick_end(convolution(form), form.graph) is not None
    return quick and min(at_once, last) >= step


def words(elements: int) -> int:
    """Count the words that ``elements`` bytes fill."""
    return -(-elements // 4)


def pairs(elements: int) -> int:
    """Words of two numbers each that ``elements`` fill."""
    return -(-elements // 2)


def unrolled(words: int, most: int) -> int:
    """Return how many of ``words`` one round of a loop takes so that rounds are fewest, where a
    round and what is left after the last are together at most ``most``."""
    if words <= most:
        return words
    fitting = (n for n in range(1, most + 1) if n + words % n <= most)
    return min(fitting, key=lambda n: (words // n, n))


def rounds(words: int, most: int) -> int:
    """Count the rounds of the loop over ``words``; 0: there is none."""
    found = words // unrolled(words, most)
    return found if found > 1 else 0
