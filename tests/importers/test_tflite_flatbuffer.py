"""The reader follows no offset out of the file and believes no size."""

from __future__ import annotations

import struct

import pytest

from pipeline.errors import ThimbleError
from pipeline.importers.tflite_flatbuffer import Table, root


def file(
    vtable_bytes: int = 6, table_bytes: int = 8, field: int = 4, back: int = 8, ahead: int = 4,
    count: int = 3, items: bytes = b"\1\2\3",
) -> bytes:  # fmt: skip
    """A table at byte 16 whose field 0 is a vector at byte 24."""
    vtable = struct.pack("<HHHxx", vtable_bytes, table_bytes, field)
    return struct.pack("<I4s8siiI", 16, b"TFL3", vtable, back, ahead, count) + items


def test_reads_what_is_there() -> None:
    table = root(file())
    assert bytes(table.raw(0)) == b"\1\2\3"
    assert table.numbers(0, "u1", 3) == (1, 2, 3)
    assert table.text(0) == "\1\2\3"
    assert table.scalar(0, "i32") == 4
    assert table.scalar(0, "i8") == 4


def test_a_field_that_is_left_out_has_its_default() -> None:
    for table in (root(file(field=0)), root(file(vtable_bytes=4))):
        assert table.scalar(0, "f32", 1.5) == 1.5
        assert table.table(0) is None
        assert table.numbers(0, "i4", 8) == ()
        assert table.count(0) == 0
    assert root(file()).scalar(7, "u8", 9) == 9


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (file(count=4), "4 items do not fit into it"),
        (file(count=0xFFFFFFFF), "4294967295 items do not fit into it"),
        (file(ahead=-1), "an offset leads to byte 4294967315"),
        (file(ahead=8), "an offset leads to byte 28"),
        (file(back=-1000), "an offset leads to byte 1016"),
        (file(back=1000), "an offset leads to byte -984"),
        (file(field=7), "a field ends outside its table"),
        (file(table_bytes=0), "a field ends outside its table"),
        (file()[:20], "an offset leads to byte 20"),
        (file()[:3], "an offset leads to byte 0"),
    ],
)
def test_refuses_what_leads_out_of_the_file(content: bytes, complaint: str) -> None:
    with pytest.raises(ThimbleError, match=complaint):
        root(content).raw(0)


def test_limits() -> None:
    table = root(file())
    with pytest.raises(ThimbleError, match="a list has 3 entries, at most 2 fit"):
        table.numbers(0, "u1", 2)
    with pytest.raises(ThimbleError, match="3 items do not fit"):
        table.numbers(0, "i4", 3)
    with pytest.raises(ThimbleError, match="entry 5 of 1 is asked for"):
        root(file(count=1, items=b"\0" * 4)).item(0, 5)
    with pytest.raises(ThimbleError, match="leads to byte -4"):
        Table(b"\0" * 64, -4).raw(0)
