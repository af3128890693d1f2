"""Convolution of few input channels into accumulators whose units stand for several.

A window stays in registers for all output channels, without the taps that lie outside. A sum S,
divided by the step and rounded to nearest, halves away from zero, is

    (S * m + 2**31) >> 32,  m = floor(2**32 / step) + 1          SMMULR, SMMLAR

as long as 2 * |S| * step < 2**32: the quotient is then off by less than its distance from any half
but the one it is at, always away from zero.
"""

import numpy as np

from pipeline.codegen.c.values import Value
from pipeline.codegen.c.views import View
from pipeline.codegen.cortex_m.assembly import REACH, add, block, load
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.operators.accumulate import passes, table
from pipeline.codegen.int8.windows import Windows
from pipeline.graph.operator import product_sums
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.cortex_m.accumulate import MOST_WINDOW, PIXELS, pairs_of_pixels
from pipeline.kernels.fast import pairs, unrolled
from pipeline.kernels.taps import kinds

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
        """Load several words of a channel together, else those of all channels."""
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


LEAST_STEP = 3
"""Least step: for a smaller one m takes more than 31 bits, so weights and step are multiplied."""

MOST_AT_ONCE, MOST_SINGLE = 3, 8
"""Groups of four channels, or channels, in the code of the innermost loop."""


def compute(job: Job, op: Conv2d, at_once: int, pass_number: Value, view: View) -> bool:
    """Write the call if there is such code for the step; return whether there is."""
    out, values = job.out(), job.program.graph.constants[op.parameters[0]]
    count, kernel_h, kernel_w, _ = values.shape
    if out.bits > 16 or kernel_h * kernel_w * at_once > MOST_WINDOW:
        return False
    split = passes(values, at_once)
    scale = 1 << (-(-LEAST_STEP // out.step) - 1).bit_length()
    flat, source = split.reshape(-1, kernel_h * kernel_w * at_once), job.source
    reach, unit = scale * int(np.abs(product_sums(flat, source)).max()), scale * out.step
    if 2 * reach * unit >= 1 << 32:
        return False
    bytes_fit = 2 * reach < ((1 << out.bits) - 1) * unit
    by_fours = pairs_of_pixels(job.form) and bytes_fit and out.strides[1] <= REACH
    inside = kinds(op, job.program.graph.tensors)
    taps = [
        [(ky, kx, c) for ky in range(kernel_h) for kx in kind.taps for c in range(at_once)]
        for kind in inside
    ]
    words = [pairs(len(each)) for each in taps]
    quads = count // 4 if out.bits == 8 and bytes_fit else 0
    unroll = unrolled(quads or count, MOST_AT_ONCE if quads else MOST_SINGLE)
    job.rows_call(
        "cortex_m/rounded", view, {"pass_number": pass_number},
        kinds=list(zip(inside, taps, words, strict=True)), window=Windows.of(job, view),
        code={n: of_window(out, n, count, quads, unroll) for n in words if n}, block=PIXELS,
        of_pixels=of_pixels(out) if by_fours else "", rows=job.target.shape[0], at_once=at_once,
        multiplier=(1 << 32) // unit + 1, scale=scale, weights=table(job, split),
    )  # fmt: skip
    return True
