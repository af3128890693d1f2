"""Products of widened windows with the weights of pairs of channels, as assembly and in C.

The sums of a pair of channels for four pixels, or of four pairs for one, take all registers but
those that assembly needs: compilers are told which ones are whose.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from pipeline.codegen.cortex_m.assembly import add, block, load

FULL = 4
"""Pixels times pairs of channels whose sums leave no register for where a loop ends."""


@dataclass(frozen=True, kw_only=True)
class Dot:
    """Layout that windows and weights share, however many pixels are computed together.

    A word of weights has two channels by two elements of a window. Its halves are 256 * second +
    first channel: the halves as they are sum up to s = b + 256 * a, so that only the first
    channel's bytes have to be widened. Where a weight forbids that (not ``packed``), both are.

    Attributes:
        groups: of ``taps`` words in a window; ``unroll``: of them in a round of the loop.
        stride: columns from a pixel's taps to the next one's, where there are several.
        wide: columns of what is widened, if that is not a window's own; ``offsets``: of the taps,
            the first is 0.
        apart: each pair's weights lie in one piece, not word by word beside other pairs'.
        woven: for a core that loads while it multiplies: words of one pixel and pair have one
            register after the other, so that what is around needs not go to the stack.
    """

    groups: int
    unroll: int
    packed: bool = False
    halves: bool = False
    taps: int = 1
    stride: int = 1
    wide: int = 0
    offsets: tuple[int, ...] = ()
    apart: bool = False
    woven: bool = False

    @property
    def pair_bytes(self) -> int:
        """Count the bytes of two output channels' weights."""
        return (4 + 4 * self.halves) * self.groups * self.taps

    def columns(self, pixels: int) -> int:
        """Words of a window group, of so many pixels."""
        return self.wide or ((pixels - 1) * self.stride + self.taps if self.taps > 1 else pixels)

    def code(self, pixels: int, pairs: int = 1, beside: int = 0, *, zero: bool = False) -> str:
        """C that adds to b0_0, s0_0 and so on, by pixel and pair of channels, from windows at x,
        ``beside`` each other if not ``pixels``, and weights at w, which goes on to the next;
        ``zero``: what is added to."""
        steps = Steps(self, pixels, pairs, beside or self.columns(pixels))
        rounds, left = divmod(self.groups, self.unroll)
        if zero and rounds == 1:
            steps.left = {f"{n}{p}_{k}" for k in range(pairs) for p in range(pixels) for n in "bs"}
        turn, rest = list(steps.lines(self.unroll)), list(steps.lines(left))
        others = self.pair_bytes * (pairs - 1) * self.apart
        more = {"w": left * steps.weights + others, "x": left * steps.beside}
        return block(
            turn, ("w0", "w1", "w2", "w3", "x0", "x1", "e"), 12, rounds=rounds,
            moves={"w": (self.unroll * steps.weights, 1), "x": (self.unroll * steps.beside, 4)},
            rest=[*rest, *(f"{name} += {step};" for name, step in more.items() if step)],
            stop="x0" if pixels * pairs >= FULL else "",
        )  # fmt: skip


@dataclass
class Steps:
    """Lines of some pixels and pairs of channels; ``beside``: words of a window group."""

    dot: Dot
    pixels: int
    pairs: int
    beside: int
    left: set[str] = field(default_factory=set)

    @property
    def weights(self) -> int:
        """Bytes of a group that a pointer goes on by."""
        return (4 + 4 * self.dot.halves) * self.dot.taps * (1 if self.dot.apart else self.pairs)

    def lines(self, groups: int) -> Iterator[str]:
        """Yield the lines of so many groups."""
        words = [(g, tap) for g in range(groups) for tap in range(self.dot.taps)][::-1]
        if self.dot.woven and self.pixels == self.pairs == 1:
            yield from self._in_turn(words)
            return
        at_once = 2 if self.pixels == 1 and self.pairs < 4 else 1
        for n in range(0, len(words), at_once):
            yield from self._step(words[n : n + at_once])

    def _weight(self, to: str, word: tuple[int, int], pair: int) -> Iterator[str]:
        dot = self.dot
        at = word[0] * dot.taps + word[1]
        apart = at + pair * dot.groups * dot.taps
        at = apart if dot.apart else at * self.pairs + pair
        yield load(to, "w", 8 * at + 4 if dot.halves else 4 * at)
        if dot.halves:
            yield load("e", "w", 8 * at)

    def _window(self, to: str, word: tuple[int, int], pixel: int) -> str:
        dot, (group, tap) = self.dot, word
        at = group * self.beside + (dot.offsets[tap] if dot.wide else tap)
        return load(to, "x", 4 * (at + pixel * (dot.stride if dot.taps > 1 or dot.wide else 1)))

    def _widened(self, w: str) -> Iterator[str]:
        if self.dot.halves:
            return
        yield f"NN_EVEN(e, {w});"
        if not self.dot.packed:
            yield f"NN_ODD({w}, {w});"

    def _both(self, w: str, x: int, pixel: int, pair: int) -> Iterator[str]:
        for total, by in ((f"b{pixel}_{pair}", "e"), (f"s{pixel}_{pair}", w)):
            yield add(total, by, f"x{x}", first=total in self.left)
            self.left.discard(total)

    def _in_turn(self, words: list[tuple[int, int]]) -> Iterator[str]:
        """Load each word of weights as soon as the one before is multiplied."""
        last = list[str]()
        for word in words:
            yield from (*self._weight("w0", word, 0), *last, self._window("x0", word, 0))
            *last, first = self._both("w0", 0, 0, 0)
            yield from (*self._widened("w0"), first)
        yield from last

    def _step(self, words: list[tuple[int, int]]) -> Iterator[str]:
        """Load some words of weights, by group and tap: two of one pixel, or one of several."""
        if self.pixels > 1:
            for pair in reversed(range(self.pairs)):
                yield from self._weight("w0", words[0], pair)
                last = range(0, self.pixels, 2)[-1]
                for p in range(last, -1, -2):
                    some = list(enumerate(range(p, min(p + 2, self.pixels))))[::-1]
                    if pair == self.pairs - 1:
                        yield from (self._window(f"x{n}", words[0], each) for n, each in some)
                    if p == last:
                        yield from self._widened("w0")
                    for n, each in some:
                        yield from self._both("w0", n, each, pair)
            return
        yield from (self._window(f"x{n}", word, 0) for n, word in enumerate(words))
        every = [(n, k) for n in range(len(words)) for k in reversed(range(self.pairs))]
        at_once = 4 if self.pairs < 4 else 2
        for k in range(0, len(every), at_once):
            some_of = [(f"w{m}", *each) for m, each in enumerate(every[k : k + at_once])]
            for w, n, pair in some_of:
                yield from self._weight(w, words[n], pair)
            for w, n, pair in some_of:
                yield from [*self._widened(w), *self._both(w, n, 0, pair)]
