"""A window's taps in assembly: how runs divide them, which nibble each reads, and where its weights
are."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from pipeline.codegen.int4.kernel import WindowKernel
from pipeline.codegen.int4.multiples import TapCode, tap_code
from pipeline.kernels.avr.window import MOST_SUMS, run_taps

MAX_DISPLACEMENT = 63
"""Bytes that ``ldd`` reaches."""


MOST_SKIPPED = 56
"""Words of a tap's products that ``breq`` skips beside what is around them."""

READ = 26
"""The register that activations are read into."""

APART, APART_COPY, APART_WEIGHTS = 20, 21, 22
"""The same, and two more, where X, Y and Z point to pixels, weights and the cursor; up to so many
lanes' sums are below."""

MOST_APART = 8


@dataclass(frozen=True)
class Tap:
    """One activation of a run and where its weights begin, in bytes.

    Attributes:
        single: which nibble of a byte shared with a neighbour holds the last lane, if any.
        closes: no other tap shares the byte of a low single.
        bytes: by how far the weights go on.
        goes_on: by how far Z goes on before it, so that ``ldd`` reaches its weights from there.
        code: the weights themselves, where they are code.
        register: that the activation is in.
        reads: its byte is read.
        copy: a register that keeps its byte for the next tap, whose activation is the other nibble;
            0: none.
        tests: the next tap's activation is the other nibble, and both are 0 if their byte is.
        tested: this is that next tap.
    """

    number: int
    element: int
    at: int = 0
    single: str = ""
    closes: bool = False
    bytes: int = 0
    goes_on: int = 0
    code: TapCode | None = None
    register: int = READ
    reads: bool = True
    copy: int = 0
    tests: bool = False
    tested: bool = False


def _free_registers(lanes: int, table: bool) -> tuple[int, ...]:
    """List registers left for multiples beside the sums, the cursor, r1 = 0, X, Y, and a copy."""
    most = range(2 + 2 * lanes, 24)
    return (0, 27, *((25,) if table else (30, 31)), *(most if table else most[:-1]))


def _copy(kernel: WindowKernel, code: bool, lanes: int) -> int:
    """Return the register for one, of those that ``andi`` takes; 0: all are taken."""
    if code and kernel.in_kind != "affine":
        return 24
    if code:
        return 23 if lanes < MOST_SUMS else 0
    sums = 2 + 2 * (lanes + 1)
    return max(sums, 16) if sums < 22 else 0


def _in_pairs(taps: list[Tap], copy: int, tests: bool, read: int = READ) -> tuple[Tap, ...]:
    """Two nibbles of one byte are read once where there is a register for a copy, else skipped at
    once where both are 0."""
    found = [replace(tap, register=read) for tap in taps]
    for n, (one, other) in enumerate(pairwise(taps)):
        if one.element % 2 == 0 and other.element == one.element + 1:
            once = tests and not other.goes_on
            found[n] = replace(one, register=read, copy=copy, tests=once)
            found[n + 1] = replace(other, register=copy or read, reads=not copy, tested=once)
    return tuple(found)


def run_begins(run: int, taps: int, lanes: int) -> int:
    """Return the byte that holds the first weight of a run."""
    return run * taps * lanes // 2


def reached_from(run: int, taps: int, lanes: int) -> int:
    """The byte that Y points to where the weights of a run are read, once for several runs."""
    base = 0
    for n in range(run + 1):
        if run_begins(n + 1, taps, lanes) - base > MAX_DISPLACEMENT:
            base = run_begins(n, taps, lanes)
    return base


def taps_of(
    kernel: WindowKernel, code: bool, apart: bool, taps: int, run: int, parity: int, runs: int
) -> tuple[Tap, ...]:
    """List the ``taps`` taps of run ``run`` of ``runs``; pixels begin in nibble ``parity``.

    Args:
        code: weights are instructions.
        apart: pixels, weights and the cursor have a pointer each.
    """
    mac, lanes = kernel.window.mac, len(kernel.lanes.channels)
    copy = _copy(kernel, code, lanes) if mac else 0
    if code:
        assert kernel.window.weights is not None
        flat = kernel.window.weights.reshape(lanes, -1)[list(kernel.lanes.channels)]
        by_tap = np.ascontiguousarray(flat.T).tolist()
        free = _free_registers(lanes, kernel.in_kind != "affine")
        read = [Tap(run * taps + tap, tap + parity) for tap in range(taps)]
        return tuple(
            replace(tap, code=tap_code(by_tap[tap.number], tap.register, free))
            for tap in _in_pairs(read, copy, not copy)
        )
    found, gone_on, first = [], 0, run_begins(run, taps, lanes)
    if apart:
        first = reached_from(run, taps, lanes)
    for tap in range(taps):
        number = run * taps + tap
        single, closes = "", False
        if mac and lanes % 2:
            single, closes = ("low", "high")[number % 2], number == runs * taps - 1
        at = number * lanes // 2 - first
        beyond = mac and at - gone_on + lanes // 2 - (not single) > MAX_DISPLACEMENT
        goes_on = at - gone_on if beyond else 0
        gone_on += goes_on
        size = lanes // 2 + int(single == "high" or closes)
        element = kernel.first + tap + parity
        found.append(Tap(number, element, at - gone_on, single, closes, size, goes_on))
    if apart:
        return _in_pairs(found, APART_COPY, False, APART)
    words = 8 * kernel.lanes.pairs + 3 * len(kernel.lanes.exact) + 6 * (lanes % 2)
    tests = not (mac and (copy or kernel.constants_in_flash or words > MOST_SKIPPED))
    tests &= mac or not kernel.window.empty  # so that 0 changes nothing
    return _in_pairs(found, copy, tests)


def rows_in_one_piece(kernel: WindowKernel) -> bool:
    """Pixels of a window's row lie side by side, and a row is short."""
    spec = kernel.window
    return spec.mac and spec.depth * spec.kernel[1] <= 8 and side_by_side(kernel)


def divided(kernel: WindowKernel) -> int:
    """Taps of equal runs that deep pixels' rows are divided into, so that the code of one is short;
    0 where pixels do not lie side by side."""
    spec = kernel.window
    row = spec.depth * spec.kernel[1]
    if not spec.mac or spec.depth % 2 or kernel.in_kind != "affine":
        return 0
    if not side_by_side(kernel):
        return 0
    return run_taps(row, kernel.most_taps)


def pieces(kernel: WindowKernel) -> int:
    """Into how many equal pieces a deep pixel is divided whose address a table has; weights in
    flash, which Z follows by itself."""
    depth = kernel.window.depth
    if kernel.in_kind == "affine" or kernel.scattered or not kernel.constants_in_flash:
        return 1
    if not kernel.window.mac or depth <= kernel.most_taps:
        return 1
    return depth // (run_taps(depth, kernel.most_taps) or depth)


def side_by_side(kernel: WindowKernel) -> bool:
    return kernel.in_rows and kernel.window.dilation[1] == 1 and not kernel.varies


def finds(kernel: WindowKernel, columns: int) -> str:
    """C that puts the addresses of the window at ``in`` into ``nn_window``, ``columns`` a row."""
    rows, (down, right), pitch = kernel.window.kernel[0], kernel.window.dilation, kernel.in_pitch
    return f"nn_find(in, {rows}, {columns}, {down}, {right * pitch}, {pitch})"
