"""docs/zoo.md says what the tests say."""

from pathlib import Path

from pipeline.models.blocks import KINDS
from tests.models.counting import member
from tests.models.test_zoo import TABLE


def rows(first: str) -> dict[str, list[str]]:
    """The cells of the table whose first column is ``first``, by the name in that column."""
    lines = Path("docs/zoo.md").read_text().splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith(f"| {first} |"))
    found = {}
    for line in lines[begin + 2 :]:
        if not line.startswith("|"):
            break
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        found[name.strip("`")] = cells
    return found


def test_the_table_of_members() -> None:
    documented = rows("`model`")
    assert list(documented) == [row.name for row in TABLE]
    for row in TABLE:
        shape = "×".join(map(str, member(row.name).input_shape))
        figures = [f"{n:,}" for n in (row.macs, row.parameters, row.peak_bytes)]
        assert documented[row.name][:4] == [shape, *figures]


def test_the_table_of_blocks() -> None:
    documented = {kind: cells[0] for kind, cells in rows("`kind`").items()}
    assert documented == {
        kind: ", ".join(f"`{k}`" + ("" if v is None else f" {v}") for k, v in options.items())
        for kind, (_, options) in KINDS.items()
    }
