"""The support table is what the code does today, and what it refuses is one clear line."""

from __future__ import annotations

import re

import pytest

from tests import support


@pytest.mark.ci
def test_the_support_table_is_current() -> None:
    page = support.page()
    assert page == support.PAGE.read_text(), "run `make deps`"
    cells = re.findall(r"\| (yes|no \[\d+\])", page)
    assert len(cells) % len(support.KINDS) == 0 and {"yes", "no [1]"} <= set(cells)
    notes = re.findall(r"(?m)^\d+\. (.*)$", page)
    assert notes and all(20 < len(note) < 250 and "Error" not in note for note in notes)
