"""The support table is what the code does today, and what it refuses is one clear line."""

import re

import pytest

from tests import support

NOTES = dict(re.findall(r"(?m)^(\d+)\. (.*)$", support.PAGE.read_text().replace("\n   ", " ")))


def test_notes_are_one_clear_line() -> None:
    assert NOTES and all(20 < len(note) < 250 and "Error" not in note for note in NOTES.values())


@pytest.mark.ci
def test_one_board_of_each_row() -> None:
    rows = re.findall(r"(?m)^\| (?!strategy|---)(.*) \|$", support.PAGE.read_text())
    strategies = support.strategies()
    assert {row.split(" | ")[0] for row in rows} == strategies.keys()
    for number, row in enumerate(rows):
        called, names, *cells = row.split(" | ")
        name = names.split(", ")[number % len(names.split(", "))]
        expected = [NOTES[cell[4:-1]] if cell != "yes" else "" for cell in cells]
        assert support.answers(strategies[called], name) == expected, (called, name)


@pytest.mark.slow
def test_the_support_table_is_current() -> None:
    assert support.page() == support.PAGE.read_text(), "run `make deps`"
