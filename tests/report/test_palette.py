"""The palette: every colour is seen, and pages have no other."""

from __future__ import annotations

import re

import pytest

from pipeline.report import palette
from pipeline.report.template import ASSETS

DRAWN = palette.MEMORY | palette.TIME | {"peak": palette.PEAK}


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


def test_pages_have_the_palette_and_no_other_colour() -> None:
    assert palette.contrast("#000000", "#ffffff") == pytest.approx(21)
    css = palette.css()
    for name, colour in palette.ALL.items():
        assert f"--{name}:{colour.light}" in css and f"--{name}:{colour.dark}" in css
    for asset in ASSETS.iterdir():
        assert not re.findall(
            r"#[0-9a-f]{6}\b|#[0-9a-f]{3}\b(?=[;\s])|rgba?\(\s*\d", asset.read_text()
        ), asset.name
