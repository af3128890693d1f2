"""The taps of a run in assembly: which nibble each reads, and where its weights are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.codegen.int4.kernel import WindowKernel
from pipeline.codegen.int4.multiples import TapCode, tap_code

MAX_DISPLACEMENT = 63
"""Bytes that ``ldd`` reaches."""


@dataclass(frozen=True)
class Tap:
    """One activation of a run and where its weights begin, in bytes.

    Attributes:
        single: which nibble of a byte shared with a neighbour holds the last lane, if any.
        closes: no other tap shares the byte of a low single.
        bytes: by how far the weights go on.
        goes_on: by how far Z goes on before it, so that ``ldd`` reaches its weights from there.
        code: the weights themselves, where they are code.
    """

    number: int
    element: int
    at: int = 0
    single: str = ""
    closes: bool = False
    bytes: int = 0
    goes_on: int = 0
    code: TapCode | None = None


def _free_registers(lanes: int, table: bool) -> tuple[int, ...]:
    """What is left for multiples beside the sums, the cursor, r1 = 0 and X, Y."""
    return (0, 27, *((24, 25) if table else (30, 31)), *range(2 + 2 * lanes, 24))


def taps_of(
    kernel: WindowKernel, code: bool, taps: int, run: int, parity: int, runs: int
) -> tuple[Tap, ...]:
    """Of run ``run`` of ``runs``, each of ``taps``, where pixels begin in nibble ``parity``.

    Args:
        code: weights are instructions.
    """
    mac, lanes = kernel.window.combine == "mac", len(kernel.lanes.channels)
    if code:
        assert kernel.window.weights is not None
        flat = kernel.window.weights.reshape(lanes, -1)[list(kernel.lanes.channels)]
        by_tap = np.ascontiguousarray(flat.T).tolist()
        free = _free_registers(lanes, kernel.in_kind != "affine")
        return tuple(
            Tap(
                run * taps + tap,
                tap + parity,
                code=tap_code(by_tap[run * taps + tap], 26, free),
            )
            for tap in range(taps)
        )
    found, gone_on, first = [], 0, run * taps * lanes // 2
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
    return tuple(found)
