"""Array files: stable bytes; what claims too much is refused by that; images for a network."""

import io
import re
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import psutil
import pytest

from pipeline import given
from pipeline.artifacts import link_npz, read_npz, write_npz
from pipeline.datasets.npz import Npz
from pipeline.errors import ThimbleError
from pipeline.frames import check, stored
from pipeline.graph.tensor import DType, Tensor
from pipeline.importers.torch_model import state_of
from tests.codegen.int8.support import network
from tests.comparing import equal
from tests.programs import refusal, said

ARRAYS = {"b": np.arange(5000, dtype=np.float32), "a": np.array(True), "c.w": np.eye(3)[:, ::-1]}


def test_arrays_of_any_name_are_equal_bytes(tmp_path: Path) -> None:
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


def test_a_link_takes_no_room_and_is_a_copy_where_there_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_npz(tmp_path / "a.npz", ARRAYS)
    (tmp_path / "b.npz").write_bytes(b"of a run before")
    link_npz(tmp_path / "a.npz", tmp_path / "b.npz")
    link_npz(tmp_path / "a.npz", tmp_path / "b.npz")
    assert (tmp_path / "b.npz").samefile(tmp_path / "a.npz")
    assert len(list(tmp_path.iterdir())) == 2
    monkeypatch.setattr(Path, "hardlink_to", Mock(side_effect=OSError("another file system")))
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
        with pytest.raises(ThimbleError, match=r"a\.npz is (damaged|missing)"):
            read()
    assert not (tmp_path / "b.npz").exists()


KEY = "data.path"


def npy(shape: tuple[int, ...], kind: str = "|u1", content: bytes = b"") -> bytes:
    """A member that claims ``shape``, whatever follows."""
    stream = io.BytesIO()
    header = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue() + content


DEEP = b"\x93NUMPY\x01\x00" + (9000).to_bytes(2, "little") + b"(" * 9000


def archive(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in members.items():
            opened.writestr(f"{name}.npy", content)
    return path


def told(path: Path, *names: str) -> str:
    said = refusal(lambda: given.headers(path, KEY, names))
    assert "\n" not in said and str(path) in said and "delete" not in said
    return said


def test_what_is_plain_is_read(tmp_path: Path) -> None:
    arrays = {"a": np.arange(6).reshape(2, 3), "b": np.float32(2.5), "c": np.zeros((0, 4))}
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "x.npz", **arrays)
        found = given.headers(tmp_path / "x.npz", KEY)
        assert {name: header.shape for name, header in found.items()} == {
            "a": (2, 3), "b": (), "c": (0, 4)
        }  # fmt: skip
        assert found["a"].bytes == 48
        read = given.read(tmp_path / "x.npz", KEY)
        assert all(np.array_equal(read[name], arrays[name]) for name in arrays)
    columns = np.asfortranarray(np.arange(12).reshape(3, 4))
    stream = io.BytesIO()
    np.lib.format.write_array(stream, columns, version=(2, 0))
    path = archive(tmp_path / "x.npz", a=stream.getvalue())
    equal(given.read(path, KEY)["a"], columns)


def test_more_than_is_possible_or_in_memory_is_refused_by_its_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez(tmp_path / "x.npz", a=np.zeros(600, np.uint8), b=np.zeros(600, np.uint8))
    monkeypatch.setattr(given, "MOST_BYTES", 1000)
    said = told(tmp_path / "x.npz")
    assert "holds a, b, " in said and "use fewer or smaller images" in said
    given.headers(tmp_path / "x.npz", KEY, ["a"])  # what is not asked for does not count
    monkeypatch.setattr(given, "MOST_MEMBERS", 1)
    assert "holds 2 arrays, 1 are possible" in told(tmp_path / "x.npz")
    monkeypatch.undo()
    np.savez(tmp_path / "x.npz", a=np.zeros(10**6, np.uint8))

    class Full:
        available = 2 * 10**6 - 1

    monkeypatch.setattr(psutil, "virtual_memory", Full)
    assert "takes 0.0 GB of memory to read (a), 0.0 GB are available" in told(tmp_path / "x.npz")
    Full.available += 1
    given.headers(tmp_path / "x.npz", KEY)


def test_what_is_no_archive_no_array_or_a_trillion_elements_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    for content in (b"", b"PK", b"\x93NUMPY", npy((2,)), b"a text"):
        path.write_bytes(content)
        assert "damaged, or holds no plain arrays" in told(path)
    for content in (b"", b"text", b"\x93NUMPY\x03\x00", b"\x93NUMPY\x01\x00\x04\x00{1:[", DEEP):
        assert told(archive(path, a=content))
    assert told(tmp_path / "no.npz").endswith("does not exist")
    np.savez(path, a=np.array([{}, [1]], object))
    assert "Python objects" in told(path), "without running anything"
    claims = {
        "elements": npy((10**6, 10**6)),
        "axes": npy((2,) * 60),
        "negative": npy((-1, 4), content=bytes(4)),
        "short": npy((5,), content=bytes(4)),
        "long": npy((3,), content=bytes(4)),
    }
    for name, content in claims.items():
        said = told(archive(tmp_path / f"{name}.npz", a=content))
        assert re.search(r"a in data.path=.* claims .* and has [04]", said), name


def test_every_byte_may_be_damaged(tmp_path: Path) -> None:
    """An array, or one line; what is read is what was saved or another array of its size."""
    path = tmp_path / "x.npz"
    np.savez_compressed(path, a=np.arange(50, dtype=np.uint8))
    whole, damaged = path.read_bytes(), 0
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            given.read(path, KEY)
        except ThimbleError as error:
            assert "\n" not in str(error)
            damaged += 1
    assert damaged > len(whole) // 2


MEASURED = """
import resource, sys
from pipeline.datasets.npz import Npz
from pipeline.errors import ThimbleError
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    Npz(path=sys.argv[1]).arrays()
except ThimbleError as error:
    print(error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.ci
def test_six_gigabytes_in_a_small_file_cost_nothing(tmp_path: Path) -> None:
    """Refused in some megabytes."""
    claimed = archive(
        tmp_path / "claimed.npz",
        train_images=npy((10**6, 10**6)), train_labels=npy((10**6,), "<i8"),
    )  # fmt: skip
    sparse = tmp_path / "sparse.npz"
    with sparse.open("wb") as stream:  # stored, not compressed: 6 GB of holes
        head = npy((6, 10**9))
        opened = zipfile.ZipFile(stream, "w")
        info = zipfile.ZipInfo("train_images.npy")
        with opened.open(info, "w", force_zip64=True) as member:
            member.write(head)
        start = stream.tell()
        opened.filelist[0].file_size = opened.filelist[0].compress_size = len(head) + 6 * 10**9
        stream.seek(start + 6 * 10**9)
        opened.start_dir = stream.tell()
        opened.close()
    for path, expected in ((claimed, "claims 1,000,000,000,000 B"), (sparse, "6.0 GB where 4.3")):
        printed = said([sys.executable, "-c", MEASURED, path])
        line, kilobytes = printed.splitlines()
        assert expected in line
        assert int(kilobytes) < 20_000


def test_weights_are_read_the_same_way_and_other_arrays_do_not_count(tmp_path: Path) -> None:
    path = archive(tmp_path / "w.npz", weight=npy((10**6, 10**6), "<f4"))
    with pytest.raises(ThimbleError, match=r"weight in model\.state_dict=.* claims 4,000,000,0"):
        state_of(path)
    np.savez(path, weight=np.ones(3, np.float32))
    assert state_of(path)["weight"].tolist() == [1, 1, 1]
    parts = {f"{part}_images": npy((20, 2, 2), content=bytes(80)) for part in ("train", "test")}
    parts |= {f"{part}_labels": npy((20,), content=bytes(20)) for part in ("train", "test")}
    path = archive(tmp_path / "x.npz", **parts, notes=npy((10**6, 10**6)), more=npy((1,), "|O"))
    assert Npz(5, str(path)).arrays()["test_images"].shape == (20, 2, 2, 1)


INT8 = DType.parse("int8")
GRAPH = network()  # 8x8x3 to 3 outputs


def data(shape: tuple[int, ...], *labels: int) -> dict[str, np.ndarray]:
    images = np.zeros((len(labels), *shape), np.uint8)
    return {"test_images": images, "test_labels": np.array(labels, np.uint8)}


def test_what_fits_is_taken_and_no_other() -> None:
    check(GRAPH, data((8, 8, 3), 0, 2, 1))
    check(GRAPH, data((1, 1, 1)))
    with pytest.raises(ThimbleError, match=r"label 3, \w+ gives 3 outputs, for labels below 3"):
        check(GRAPH, data((8, 8, 3), 0, 3, 1))
    with pytest.raises(ThimbleError, match=r"images of 8x9x3 are not what .* takes \(8x8x3\)"):
        check(GRAPH, data((8, 9, 3), 0))
    for shape, word in (((3, 8, 8), "channels come first"), ((4, 16, 3), "choose another data")):
        with pytest.raises(ThimbleError, match=word):
            check(GRAPH, data(shape, 0))
        with pytest.raises(ThimbleError, match=word):
            stored(data(shape, 0)["test_images"], GRAPH.tensors[GRAPH.input])
    signal = Tensor("x", (1, 40, 1), INT8, (1.0,), 0)
    for shape in ((40, 1, 1), (1, 1, 40), (8, 5, 1)):
        takes = replace(signal, shape=(40,)) if shape[1] == 5 else signal
        assert stored(np.zeros((2, *shape), np.uint8), takes).shape == (2, *takes.shape)
    with pytest.raises(ThimbleError, match="images of 8x5x1"):
        stored(np.zeros((2, 8, 5, 1), np.uint8), replace(signal, shape=(5, 8, 1)))
    with pytest.raises(ThimbleError, match="save them flat"):
        stored(np.zeros((2, 4, 5, 2), np.uint8), replace(signal, shape=(40,)))


def test_known_units_go_through_the_scale() -> None:
    """0…255 mean -1…1; what the input cannot hold is the nearest it can."""
    tensor = Tensor("x", (1, 1, 5), INT8, (0.01,), 7, (-1.0, 1.0))
    raw = np.array([0, 64, 128, 191, 255], np.uint8).reshape(1, 1, 1, 5)
    assert stored(raw, tensor).tolist() == [[[[-93, -43, 7, 57, 107]]]]
    assert stored(raw, replace(tensor, scale=(0.005,))).ravel().tolist() == [-128, -93, 8, 107, 127]
    assert stored(raw, replace(tensor, raw=None)).ravel().tolist() == [-128, -64, 0, 63, 127]
    unsigned = replace(tensor, raw=None, dtype=DType.parse("uint8"))
    assert stored(raw, unsigned).ravel().tolist() == raw.ravel().tolist()
    assert repr(tensor) == repr(replace(tensor, raw=None))  # hashes are of what code depends on
