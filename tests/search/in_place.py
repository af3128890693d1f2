"""``python -m tests.search.in_place``: how far above the best of all orders random small layers are
planned in place, by kind of layer. ``KIND …``: only these; ``--cases N`` of each, 100.

``above``: layers whose arena is larger than the least peak of any order of their elements, and by
how much; ``rows``: how many are larger than that in row-major order. Ends with 1 where one is.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.strategies.in_place import Herringbone, Replace
from tests.search.every_order import all_channels, by_byte, given_to, least, units_of
from tests.strategies.chains import Chain, board
from tests.strategies.peaks import arena_nibbles

MOST_UNITS = 15
VALID = (0, 0, 0, 0)
WIDTHS = tuple(product(("uint4", "uint8"), repeat=2))
Draw = Callable[[np.random.Generator], Chain]


def _image(rng: np.random.Generator, fin: int, most: int = 9) -> tuple[Chain, str]:
    """Draw an image of 4 or 8 bits, and the type of what the layer makes of it."""
    height, width = (int(n) for n in rng.integers(1, most, 2))
    given, made = WIDTHS[int(rng.integers(4))]
    return Chain((height, width, fin), given), made


def _convolution(
    rng: np.random.Generator,
    kernel: tuple[int, int] | None = None,
    stride: tuple[int, int] = (1, 1),
    dilation: tuple[int, int] = (1, 1),
    same: bool = False,
    multiplier: int = 0,
) -> Chain:
    chain, made = _image(rng, int(rng.integers(1, 4 if multiplier else 7)))
    fin = chain.tensors["image"].shape[2]
    sides = kernel or (int(rng.integers(1, 5)),) * 2
    reach = [(k - 1) * d for k, d in zip(sides, dilation, strict=True)]
    padding = (reach[0] // 2, -(-reach[0] // 2), reach[1] // 2, -(-reach[1] // 2))
    fout, groups = (fin * multiplier, fin) if multiplier else (int(rng.integers(1, 10)), 1)
    return chain.conv(
        "y", fout, sides, made, groups,
        stride=stride, dilation=dilation, padding=padding if same else VALID,
    )  # fmt: skip


def _some(rng: np.random.Generator, low: int, high: int) -> tuple[int, int]:
    a, b = rng.integers(low, high, 2)
    return int(a), int(b)


def _pair(rng: np.random.Generator) -> Chain:
    chain, made = _image(rng, int(rng.integers(1, 4)), 5)
    fin = chain.tensors["image"].shape[2]
    multiplier = int(rng.integers(1, 3))
    chain.conv("d", fin * multiplier, 3, made, fin, padding=(1, 1, 1, 1))
    return chain.conv("y", int(rng.integers(1, 8)), 1, made)


def _pool(rng: np.random.Generator) -> Chain:
    chain, _ = _image(rng, int(rng.integers(1, 4)))
    kernel, stride = _some(rng, 1, 4), _some(rng, 1, 3)
    padding = tuple(int(rng.integers(0, min(2, k))) for k in np.repeat(kernel, 2))
    return chain.maximum("y", kernel=kernel, stride=stride, padding=padding)


def _any(rng: np.random.Generator) -> Chain:
    return _convolution(
        rng, _some(rng, 1, 4), _some(rng, 1, 4), _some(rng, 1, 3), bool(rng.random() < 0.5)
    )


def _residual(rng: np.random.Generator) -> Chain:
    """Five pixels at most: there are three of each to make."""
    height = int(rng.integers(1, 6))
    bits, depth = WIDTHS[int(rng.integers(4))][0], int(rng.integers(1, 7))
    chain = Chain((height, int(rng.integers(1, 5 // height + 1)), depth), bits)
    for name, channels in (("d", int(rng.integers(1, 9))), ("e", depth)):
        kernel = tuple(int(n) for n in rng.choice((1, 3), 2))
        padding = tuple(k // 2 for k in kernel for _ in range(2))
        chain.conv(name, channels, kernel, bits, padding=padding)
    return chain.plus("y", "image")


KINDS: dict[str, Draw] = {
    "square": _convolution,
    "non-square kernels": lambda rng: _convolution(rng, _some(rng, 1, 6)),
    "unequal strides": lambda rng: _convolution(rng, _some(rng, 1, 5), _some(rng, 1, 4)),
    "same padding": partial(_convolution, same=True),
    "same padding, strides": lambda rng: _convolution(rng, (3, 3), _some(rng, 1, 4), same=True),
    "dilation": lambda rng: _convolution(
        rng, _some(rng, 1, 4), dilation=_some(rng, 1, 4), same=bool(rng.random() < 0.5)
    ),
    "1x1": partial(_convolution, kernel=(1, 1)),
    "depthwise": lambda rng: _convolution(
        rng, _some(rng, 1, 4), same=bool(rng.random() < 0.5), multiplier=int(rng.integers(1, 4))
    ),
    "depthwise-separable": _pair,
    "residual": _residual,
    "pooling": _pool,
    "anything": _any,
}


def best(chain: Chain) -> int | None:
    """Nibbles; None where there are too many units to try all orders."""
    first, *rest = chain.operators
    units = units_of(first, chain.tensors)
    groups = first.groups if isinstance(first, Conv2d) else 1
    for op in rest:
        units += all_channels(units_of(op, chain.tensors), groups)
    if not 2 <= len(units) <= MOST_UNITS:
        return None
    given, source = given_to(first, chain.tensors), chain.tensors[first.inputs[0]]
    if any(chain.tensors[op.output].dtype.bits <= source.dtype.bits for op in chain.operators):
        return least(units, given)
    found = least(*by_byte(units, given, source))
    return found + found % 2 if found > source.size else found


def several(kind: str, number: int) -> Iterator[Chain]:
    """Yield chains of a kind without end, the same for the same number."""
    rng = np.random.default_rng([sum(kind.encode()), number])
    while True:
        with suppress(ThimbleError):  # no output is left
            yield KINDS[kind](rng)


def drawn(kind: str, number: int) -> tuple[Chain, int]:
    """Case ``number`` of a kind, and the least that it can do with."""
    found = ((chain, best(chain)) for chain in several(kind, number))
    return next((chain, least) for chain, least in found if least is not None)


class Judged(NamedTuple):
    """Nibbles: as planned, of the best order, and in row-major order."""

    found: int
    best: int
    by_rows: int


def judged(kind: str, number: int) -> Judged:
    chain, optimum = drawn(kind, number)
    tight = board(streams=False, sram_bytes=1)
    plans = [s.plan(chain.graph(), tight) for s in (Herringbone(), Replace())]
    found, by_rows = map(arena_nibbles, plans)
    assert found >= optimum, (kind, number, found, optimum)
    return Judged(found, optimum, by_rows)


def main() -> None:
    """Print a line a kind; end with 1 where one is above the best, or above rows."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--cases", type=int, default=100)
    options = parser.parse_args()
    wrong = False
    print(f"{'':24}{'cases':>6}{'above':>6}{'worst':>8}{'mean':>8}{'rows':>6}")
    for kind in options.kinds:
        every = [judged(kind, number) for number in range(options.cases)]
        ratios = [each.found / each.best for each in every]
        above = sum(ratio > 1 for ratio in ratios)
        worse = sum(each.found > each.by_rows for each in every)
        wrong |= worse > 0 or above > 0
        mean, worst = np.mean(ratios) - 1, max(0, *ratios) - 1
        counts = f"{len(every):6}{above:6}{worst:8.1%}{mean:8.2%}{worse:6}"
        print(f"{kind:24}{counts}", flush=True)
    sys.exit(wrong)


if __name__ == "__main__":
    main()
