"""Sums of a few products, rounded by the multiplier m and added to accumulators of 8 or 16 bits,
from one to the next of which `to` goes: see ``operators/rounded.py``."""

from __future__ import annotations

from pipeline.codegen.c.views import View
from pipeline.codegen.cortex_m.assembly import Block, Line, add, load

GIVEN = {"m": ("const int32_t ", "r2")}


def of_pixels(out: View) -> str:
    """C that adds ``last`` pixels, four at a time, each a word from ``pixel`` on, to four channels
    whose weights are in w0 to w3."""
    weights = {f"w{n}": ("const uint32_t ", f"r{3 + n}") for n in range(4)}
    sums = [[add("t", "x", weight, first=True)] for weight in weights]
    each = [load("x", "pixel", move=1), *_four(out, sums, "t", out.strides[1])]
    return Block(
        turn=each * 4,
        rounds="last / 4",
        held={"pixel": ("nn_word_t *", "r0"), "to": (f"{out.type} *", "r1")},
        given={**GIVEN, **weights, "end": ("const nn_word_t *", "r8")},
        scratch=dict.fromkeys("xpt", ""),
        before=["const nn_word_t *const end = pixel + last;"],
        stop=["cmp %[pixel], %[end]"],
    ).code(12)


def of_window(out: View, words: int, channels: int, fours: int, unroll: int) -> str:
    """C that adds a window, in x0 and so on, to all channels, ``fours`` times four of them at once;
    ``unroll``: of those, or of channels, in a round."""
    load_all = f"ldmia %[w]!, {{r3-r{2 + words}}}" if words > 1 else "ldr %[w0], [%[w]], #4"
    c = "".join(f"w{n} = w[{n}]; " for n in range(words))
    some = [Line(load_all, f"{c}w += {words};")]
    some += [add("w0", f"x{n}", f"w{n}", first=not n) for n in range(words)]
    one = [*some, *_single(out)]
    each = _four(out, [some] * 4, "w0", 4) if fours else one
    rounds, left = divmod(fours or channels, unroll)
    count, step, again = ("x4", 1 << 16, "bpl") if words == 5 else ("left", 1, "bne")
    given = {**GIVEN, **{f"x{n}": ("uint32_t ", f"r{8 + n}") for n in range(words)}}
    held = {"w": ("const nn_word_t *", "r0"), "to": (f"{out.type} *", "r1")}
    before = []
    if rounds > 1:  # the upper half of the last of five weights is zero: rounds are counted there
        held[count] = given.pop("x4", ("int32_t ", "r12"))
        before = [f"x4 |= {rounds - 1}u << 16;" if words == 5 else f"int32_t left = {rounds};"]
    return Block(
        turn=each * unroll,
        rest=each * left + one * (channels % 4 if fours else 0),
        rounds=rounds,
        held=held,
        given=given,
        scratch={**{f"w{n}": f"r{3 + n}" for n in range(words)}, "p": "r14"},
        before=before,
        stop=[f"subs %[{count}], %[{count}], #{step}"],
        again=again,
    ).code(12)


def _four(out: View, sums: list[list[Line]], free: str, last: int) -> list[Line]:
    """Four channels, whose rounded sums fit an accumulator each.

    Args:
        sums: lines that make them, in ``free``; ``last``: bytes from the first to the next pixel's.
    """
    bits, found = out.bits, list[Line]()
    for n, lines in enumerate(sums):
        at = n * bits % 32
        to = free if at else "p"
        c = f"{to} = (uint32_t)nn_add_product({free}, (uint32_t)m, 0);"
        found += [*lines, Line(f"smmulr %[{to}], %[{free}], %[m]", c)]
        if at and bits == 8:
            c = f"p = (p & ~(255u << {at})) | ({free} & 255) << {at};"
            found.append(Line(f"bfi %[p], %[{free}], #{at}, #8", c))
        elif at:
            c = f"p = nn_lows(p, {free});"
            found.append(Line(f"pkhbt %[p], %[p], %[{free}], lsl #16", c))
        if at + bits == 32:
            move = last - 4 * (out.bytes - 1) if n == 3 else 4
            c = f"p = nn_saturated_sums(p, {free}, {bits});"
            found += [load(free, "to"), Line(f"qadd{bits} %[p], %[p], %[{free}]", c)]
            c = f"memcpy(to, &p, sizeof p); to += {move};"
            found.append(Line(f"str %[p], [%[to]], #{move}", c))
    return found


def _single(out: View) -> list[Line]:
    """One channel, whose sum is in w0."""
    size, most, to = "b" if out.bits == 8 else "h", 1 << (out.bits - 1), out.named("to")
    c = "nn_add_product(w0, (uint32_t)m, (int32_t)p)"
    stored = to.store("0", f"nn_clip({c}, {-most}, {most - 1})")
    return [
        Line(f"ldrs{size} %[p], [%[to]]", f"p = (uint32_t){to.load('0')};"),
        Line("smmlar %[p], %[w0], %[m], %[p]", ""),
        Line(f"ssat %[p], #{out.bits}, %[p]", ""),
        Line(f"str{size} %[p], [%[to]], #{out.bytes}", f"{stored} to += {out.bytes};"),
    ]
