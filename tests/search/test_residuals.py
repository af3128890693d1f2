"""Residual blocks in place, of many sizes and strides, take at most 2w + 4 pixels beside what they
are given or make."""

from __future__ import annotations

import pytest

from tests.search.residuals import Block, beside, blocks
from tests.tiers import quick

FIRST = [Block(8, 8, 3), Block(14, 14, 8, (2, 2), 2)]
MORE = [Block(14, 14, 3), Block(14, 14, 8, (1, 2), 2), Block(7, 40, 8, (1, 1), 2)]
"""The smallest of each kind; of the others 56 x 56 pixels take a minute of processor time."""


@pytest.mark.parametrize(
    Block._fields, quick(FIRST, sorted(blocks(), key=lambda block: block not in MORE), ci=len(MORE))
)
def test_pixels_beside_a_block(
    height: int, width: int, channels: int, stride: tuple[int, int], wider: int
) -> None:
    pixels = beside(Block(height, width, channels, stride, wider))
    assert pixels.right, pixels


def test_what_is_counted() -> None:
    """8 x 8 pixels of 3 bytes: whole, the input, the first convolution and the second one."""
    assert beside(Block(8, 8, 3)).whole == 2 * 64
