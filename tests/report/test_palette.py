"""The palette: every colour is seen, each means one thing, and none looks like another."""

from __future__ import annotations

import re
from itertools import combinations
from math import dist

import pytest

from pipeline.report import palette
from pipeline.report.template import ASSETS

DRAWN = palette.MEMORY | palette.TIME | {"peak": palette.PEAK}
LEAST_APART = 20.0
"""CIE 1976; about 2 are just seen side by side, less than 20 taken for another in a legend."""


def lab(colour: str) -> tuple[float, float, float]:
    """L*, a*, b* of sRGB, of white D65."""
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    to_xyz = (
        (0.4124 / 0.9505, 0.3576 / 0.9505, 0.1805 / 0.9505), (0.2126, 0.7152, 0.0722),
        (0.0193 / 1.089, 0.1192 / 1.089, 0.9505 / 1.089),
    )  # fmt: skip
    xyz = [sum(a * b for a, b in zip(row, linear, strict=True)) for row in to_xyz]
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("shade", ["light", "dark"])
def test_text_and_colours_can_be_told_from_what_is_behind(shade: str) -> None:
    """WCAG 2.2 AA: 4.5 for text, 3 for what is drawn."""
    for behind in (palette.PAPER, palette.PANEL):
        ground = getattr(behind, shade)
        for text in (palette.INK, palette.QUIET, palette.PEAK):
            assert palette.contrast(getattr(text, shade), ground) >= 4.5, text
        for name, drawn in DRAWN.items():
            assert palette.contrast(getattr(drawn, shade), ground) >= 3, name
    for ground in ("#000000", "#ffffff"):  # of a terminal
        assert palette.contrast(palette.PEAK.light, ground) > 3


@pytest.mark.parametrize("shade", ["light", "dark"])
def test_no_two_colours_look_alike(shade: str) -> None:
    assert sum(value**2 for value in lab("#ffffff")[1:]) < 0.01
    assert lab("#ffffff")[0] == pytest.approx(100)
    for one, other in combinations(DRAWN, 2):
        apart = dist(*(lab(getattr(DRAWN[name], shade)) for name in (one, other)))
        assert apart >= LEAST_APART, (one, other, apart)


def test_pages_have_the_palette_and_no_other_colour() -> None:
    assert palette.contrast("#000000", "#ffffff") == pytest.approx(21)
    css = palette.css()
    for name, colour in palette.ALL.items():
        assert f"--{name}:{colour.light}" in css and f"--{name}:{colour.dark}" in css
    for asset in ASSETS.iterdir():
        assert not re.findall(
            r"#[0-9a-f]{6}\b|#[0-9a-f]{3}\b(?=[;\s])|rgba?\(\s*\d", asset.read_text()
        ), asset.name
