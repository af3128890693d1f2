"""Products of widened windows with the weights of pairs of channels, as assembly and in C.

The sums of a pair of channels for four pixels, or of four pairs for one, take all registers but
those that assembly needs: compilers are told which ones are whose.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from pipeline.codegen.cortex_m.assembly import Block, Line, add, load

FULL = 4
"""Pixels times pairs of channels whose sums leave no register for where a loop ends."""

REACH = 255
"""Bytes that a load can move a pointer on by."""

TEMPORARIES = ("w0", "w1", "w2", "w3", "x0", "x1", "e")
POINTERS = {"w": ("int8_t", 1), "x": ("nn_word_t", 4)}
"""Their types, and bytes of those."""


@dataclass(frozen=True)
class Load:
    """Load of the element ``at`` from where a pointer was at first."""

    to: str
    pointer: str
    at: int


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
        far: loads from windows leave their pointer where it is until a round ends, so that a core
            may weave them.
        apart: each pair's weights lie in one piece, not word by word beside other pairs'.
    """

    groups: int
    unroll: int
    packed: bool = False
    halves: bool = False
    taps: int = 1
    stride: int = 1
    wide: int = 0
    offsets: tuple[int, ...] = ()
    far: bool = False
    apart: bool = False

    @property
    def pair_bytes(self) -> int:
        """Count the bytes of two output channels' weights."""
        return (4 + 4 * self.halves) * self.groups * self.taps

    def columns(self, pixels: int) -> int:
        """Words of a window group, of so many pixels."""
        return self.wide or ((pixels - 1) * self.stride + self.taps if self.taps > 1 else pixels)

    def code(self, pixels: int, pairs: int = 1, beside: int = 0) -> str:
        """C that adds to b0_0, s0_0 and so on, by pixel and pair of channels, from windows at x,
        ``beside`` each other if not ``pixels``, and weights at w, which goes on to the next."""
        steps = Steps(self, pixels, pairs, beside or self.columns(pixels))
        rounds = self.groups // self.unroll
        sums = [f"{n}{p}_{k}" for k in range(pairs) for p in range(pixels) for n in "bs"]
        full, loops = pixels * pairs >= FULL, rounds > 1
        made = sums if self.halves and not loops else []
        turn = steps.lines(self.unroll if loops else self.groups, made)
        rest = steps.lines(self.groups - self.unroll * rounds) if loops else []
        if self.apart and pairs > 1:
            more = self.pair_bytes * (pairs - 1)
            rest.append(Line(f"add %[w], %[w], #{more}", f"w += {more};"))
        end = f"end = w + {self.unroll * rounds * steps.weights};"
        text = " ".join(line.assembly for line in [*turn, *rest])
        return Block(
            turn=turn,
            rest=rest,
            rounds=rounds,
            held={
                **{name: ("int32_t ", f"r{4 + n}") for n, name in enumerate(sums)},
                "w": ("const int8_t *", "r0"),
                "x": ("const nn_word_t *", "r1"),
            },
            made=made,
            scratch={name: "" for name in TEMPORARIES if f" %[{name}]," in text},
            before=[f"const int8_t *{'volatile' if full else 'const'} {end}"] * loops,
            given={"end": ("", "m" if full else "r")} if loops else {},
            stop=["ldr %[x0], %[end]", "cmp %[w], %[x0]"] if full else ["cmp %[w], %[end]"],
        ).code(12)


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

    def lines(self, groups: int, made: Collection[str] = ()) -> list[Line]:
        """List the lines of so many groups, behind which both pointers are moved; ``made``: sums
        that begin with their first product."""
        self.left = set(made)
        words = [(g, tap) for g in range(groups) for tap in range(self.dot.taps)]
        at_once = 2 if self.pixels == 1 and self.pairs < 4 else 1
        some = (words[n : n + at_once] for n in range(0, len(words), at_once))
        found = [line for each in some for line in self._step(each)]
        for pointer, more in (("w", self.weights * groups), ("x", self.beside * groups)):
            found = moving(found, pointer, more, far=pointer == "x" and self.dot.far)
        return [line for line in found if isinstance(line, Line)]

    def _weight(self, to: str, word: tuple[int, int], pair: int) -> Iterator[Load]:
        dot = self.dot
        at = word[0] * dot.taps + word[1]
        apart = at + pair * dot.groups * dot.taps
        at = apart if dot.apart else at * self.pairs + pair
        if dot.halves:
            yield Load("e", "w", 8 * at)
        yield Load(to, "w", 8 * at + 4 if dot.halves else 4 * at)

    def _window(self, to: str, word: tuple[int, int], pixel: int) -> Load:
        dot, (group, tap) = self.dot, word
        at = group * self.beside + (dot.offsets[tap] if dot.wide else tap)
        return Load(to, "x", at + pixel * (dot.stride if dot.taps > 1 or dot.wide else 1))

    def _widened(self, w: str) -> Iterator[Line]:
        if self.dot.halves:
            return
        yield Line(f"sxtb16 %[e], %[{w}]", f"e = nn_even_s8({w});")
        if not self.dot.packed:
            yield Line(f"sxtb16 %[{w}], %[{w}], ror #8", f"{w} = nn_odd_s8({w});")

    def _step(self, words: list[tuple[int, int]]) -> Iterator[Line | Load]:
        """Some words of weights, by group and tap: two of one pixel, or one of several."""

        def both(w: str, x: int, pixel: int, pair: int) -> Iterator[Line]:
            for total, by in ((f"b{pixel}_{pair}", "e"), (f"s{pixel}_{pair}", w)):
                yield add(total, by, f"x{x}", first=total in self.left)
                self.left.discard(total)

        if self.pixels > 1:
            for pair in range(self.pairs):
                yield from self._weight("w0", words[0], pair)
                for p in range(0, self.pixels, 2):
                    some = list(enumerate(range(p, min(p + 2, self.pixels))))
                    if not pair:
                        yield from (self._window(f"x{n}", words[0], each) for n, each in some)
                    if not p:
                        yield from self._widened("w0")
                    for n, each in some:
                        yield from both("w0", n, each, pair)
            return
        yield from (self._window(f"x{n}", word, 0) for n, word in enumerate(words))
        every = [(n, pair) for n in range(len(words)) for pair in range(self.pairs)]
        at_once = 4 if self.pairs < 4 else 2
        for k in range(0, len(every), at_once):
            some_of = [(f"w{m}", *each) for m, each in enumerate(every[k : k + at_once])]
            for w, n, pair in some_of:
                yield from self._weight(w, words[n], pair)
            for w, n, pair in some_of:
                yield from [*self._widened(w), *both(w, n, 0, pair)]


def moving(lines: list[Line | Load], pointer: str, more: int, *, far: bool) -> list[Line | Load]:
    """``lines`` with its loads written out, which move it to the next one's place and in the end
    ``more`` elements on; where that is too far, or ``far``, the last line does: loads that jump to
    and fro may then be woven."""
    size = POINTERS[pointer][1]
    places = [line.at for line in lines if isinstance(line, Load) and line.pointer == pointer]
    steps = [after - at for at, after in zip(places, [*places[1:], more], strict=False)]
    near = not far and places[:1] == [0] and all(size * abs(step) <= REACH for step in steps)
    moves = iter(steps)

    found: list[Line | Load] = [
        load(line.to, pointer, *((0, next(moves)) if near else (line.at, 0)), size)
        if isinstance(line, Load) and line.pointer == pointer
        else line
        for line in lines
    ]
    if places and not near:
        add = f"add %[{pointer}], %[{pointer}], #{size * more}"
        found.append(Line(add, f"{pointer} += {more};"))
    return found
