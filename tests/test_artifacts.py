"""Files that stages exchange: stable bytes, one line for damage, no copy where none is needed."""

from pathlib import Path

import numpy as np
import pytest

from pipeline.artifacts import link_npz, read_npz, write_npz
from pipeline.errors import ThimbleError

ARRAYS = {"b": np.arange(5000, dtype=np.float32), "a": np.array(True), "c.w": np.eye(3)[:, ::-1]}


def test_equal_arrays_are_equal_bytes(tmp_path: Path) -> None:
    write_npz(tmp_path / "a.npz", ARRAYS)
    write_npz(tmp_path / "b.npz", dict(reversed(ARRAYS.items())))
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    found = read_npz(tmp_path / "a.npz")
    assert list(found) == sorted(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)
    plain = {"b": np.arange(6).reshape(2, 3), "a": np.float32(1.5) * np.ones(2)}
    write_npz(tmp_path / "c.npz", plain)
    np.savez(tmp_path / "d.npz", **{key: plain[key] for key in sorted(plain)})
    assert (tmp_path / "c.npz").read_bytes() == (tmp_path / "d.npz").read_bytes()


def test_a_link_takes_no_room_and_is_a_copy_where_there_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_npz(tmp_path / "a.npz", ARRAYS)
    (tmp_path / "b.npz").write_bytes(b"of a run before")
    link_npz(tmp_path / "a.npz", tmp_path / "b.npz")
    link_npz(tmp_path / "a.npz", tmp_path / "b.npz")
    assert (tmp_path / "b.npz").samefile(tmp_path / "a.npz")
    assert len(list(tmp_path.iterdir())) == 2

    def no_links(*_: object) -> None:
        raise OSError("another file system")

    monkeypatch.setattr(Path, "hardlink_to", no_links)
    link_npz(tmp_path / "a.npz", tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert not (tmp_path / "b.npz").samefile(tmp_path / "a.npz")


@pytest.mark.parametrize("damage", ["cut", "byte", "missing"])
def test_damage_is_one_line(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "a.npz"
    write_npz(path, ARRAYS)
    content = bytearray(path.read_bytes())
    if damage == "byte":
        content[12000] ^= 1
    path.write_bytes(content[:-40] if damage == "cut" else content)
    if damage == "missing":
        path.unlink()
    reads = (lambda: read_npz(path), lambda: link_npz(path, tmp_path / "b.npz"))
    for read in reads:
        with pytest.raises(ThimbleError, match=r"a\.npz is (damaged|missing)") as caught:
            read()
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "b.npz").exists()


def test_arrays_of_any_name_are_kept(tmp_path: Path) -> None:
    """Tensors are called what a file says; ``np.savez`` has arguments of its own."""
    path = tmp_path / "a.npz"
    names = ("file", "allow_pickle", "args", "a/b", "../a", "\u2603", " ", "x" * 300)
    arrays = {name: np.arange(n) for n, name in enumerate(names)}
    write_npz(path, arrays)
    found = read_npz(path)
    assert found.keys() == arrays.keys()
    assert all((found[name] == arrays[name]).all() for name in names)
    with pytest.raises(ThimbleError, match=r"a tensor is called 'a\\x00b': give it a name"):
        write_npz(path, {"a\0b": np.arange(2)})
    assert read_npz(path).keys() == arrays.keys(), "the old file is whole"
