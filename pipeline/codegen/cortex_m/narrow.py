"""Sums of a few products, rounded by the multiplier m and added to accumulators of 8 or 16 bits at
``to``: see ``operators/rounded.py``."""

from __future__ import annotations

from pipeline.codegen.c.views import View
from pipeline.codegen.cortex_m.assembly import add, block, load

MOST_WORDS = 4
"""Most words of a window beside which a register is left for accumulators and the loop's end."""

Sum = tuple[list[str], str]
"""Lines that make a channel's sum, and what that is in then."""


def of_pixels(out: View) -> str:
    """C that adds ``last`` pixels, four at a time, each a word from ``pixel`` on, to four channels
    whose weights are in w0 to w3."""
    turn, apart = list[str](), out.strides[1]
    for n in reversed(range(4)):
        sums = [([add("t", "x", f"w{channel}", first=True)], "t") for channel in range(4)]
        sums[0][0].insert(0, load("x", "pixel", 4 * n))
        turn += _four(out, sums, n * apart, "a")
    moves = {"pixel": (4, 4), "to": (4 * apart, 1)}
    return block(turn, "xpta", 12, rounds="(last / 4)", moves=moves)


def of_window(out: View, words: int, channels: int, fours: int, unroll: int) -> str:
    """C that adds a window, in x0 and so on, to all channels, ``fours`` times four of them at once;
    ``unroll``: of those, or of channels, in a round."""
    each, few = 4 if fours else 1, words <= MOST_WORDS
    rounds, left = divmod(fours or channels, unroll)

    def sums(first: int, count: int) -> list[Sum]:
        """Of several words those of a channel are loaded together, else those of all channels."""
        if words > 1:
            return [
                (
                    [load(f"w{k}", "w", 4 * (n * words + k)) for k in range(words)]
                    + [add("w0", f"x{k}", f"w{k}", first=not k) for k in range(words)],
                    "w0",
                )
                for n in range(first, first + count)
            ]
        found = [([add(f"w{n}", "x0", f"w{n}", first=True)], f"w{n}") for n in range(count)]
        found[0][0][:0] = [load(f"w{n}", "w", 4 * (first + n)) for n in reversed(range(count))]
        return found

    def made(several: int, singles: int = 0) -> list[str]:
        found = list[str]()
        for n in range(several * each, several * each + singles):
            found += _single(out, sums(n, 1)[0], n * out.bytes)
        for n in reversed(range(0, several * each, each)):
            some, place = sums(n, each), n * out.bytes
            found += _four(out, some, place, "a" * few) if fours else _single(out, some[0], place)
        return found

    moves = {"w": (unroll * each * words, 4), "to": (unroll * each * out.bytes, 1)}
    return block(
        made(unroll), [*(f"w{k}" for k in range(max(words, each))), "p", "a"], 12, rounds=rounds,
        moves=moves, rest=made(left, channels % 4 if fours else 0), stop="" if few else "p",
    )  # fmt: skip


def _four(out: View, sums: list[Sum], place: int, early: str) -> list[str]:
    """Four channels, whose rounded sums fit an accumulator each.

    Args:
        place: bytes from ``to`` on; ``early``: what accumulators are loaded to beside words.
    """
    bits, found = out.bits, list[str]()
    for n, (lines, total) in enumerate(sums):
        at, word = n * bits % 32, place + n * bits // 32 * 4
        found += [load(early, "to", word)] * (not at and bool(early))
        found += [*lines, f"NN_PRODUCT({total if at else 'p'}, {total}, m);"]
        found += [f"NN_PUT({bits}, p, {total}, {at});"] * (at > 0)
        if at + bits == 32:
            found += [load(total, "to", word)] * (not early)
            found += [f"NN_SUMS_{bits}(p, {early or total});", f"NN_STORE(p, to, {word});"]
    return found


def _single(out: View, made: Sum, place: int) -> list[str]:
    to, at, (lines, total) = out.named("to"), str(place), made
    more = f"p = (uint32_t)nn_add_product({total}, (uint32_t)m, {to.load(at)});"
    return [*lines, more, f"NN_CLIP({out.bits}, p, p);", to.store(at, "p")]
