"""The graph checks itself, runs exactly, and survives the disk."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.artifacts import read_npz
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import DType
from tests.comparing import equal
from tests.plan.fixtures import row_ring


@pytest.fixture
def graph() -> Graph:
    return row_ring(np.random.default_rng(0))[1]


def test_save_and_load_keep_everything_and_every_byte(graph: Graph, tmp_path: Path) -> None:
    graph.save(tmp_path / "a")
    loaded = Graph.load(tmp_path / "a")
    loaded.save(tmp_path / "b")
    for name in ("graph.json", "graph.npz"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert loaded.hash == graph.hash and loaded.operators == graph.operators
    frames = np.random.default_rng(1).integers(0, 256, (3, 7, 6, 2))
    equal(loaded.evaluate(frames), graph.evaluate(frames, batch=2))


def test_constants_are_stored_narrow_and_come_back_as_they_were(
    graph: Graph, tmp_path: Path
) -> None:
    graph.save(tmp_path)
    stored = read_npz(tmp_path / "graph.npz")
    for name, values in graph.constants.items():
        bits = graph.tensors[name].dtype.bits
        assert stored[name].itemsize == max(1, bits // 8) < 8
        again = Graph.load(tmp_path).constants[name]
        assert again.dtype == np.int64 and np.array_equal(again, values)


def test_hash_follows_weights(graph: Graph) -> None:
    constants = {**graph.constants, "h.bias": graph.constants["h.bias"] ^ 1}
    assert replace(graph, constants=constants).hash != graph.hash


@pytest.mark.parametrize("keep", [0, 40, -10])
@pytest.mark.parametrize("name", ["graph.json", "graph.npz"])
def test_damaged_files_are_one_clear_line(
    graph: Graph, tmp_path: Path, name: str, keep: int
) -> None:
    graph.save(tmp_path)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[:keep])
    with pytest.raises(ThimbleError, match=f"{name} is damaged"):
        Graph.load(tmp_path)


def test_graph_names_what_is_wrong(graph: Graph) -> None:
    with pytest.raises(ThimbleError, match="h reads image, which nothing before it produces"):
        replace(graph, inputs=("other",))
    wide = {**graph.constants, "h.bias": graph.constants["h.bias"] + 1000}
    with pytest.raises(ThimbleError, match=r"h\.bias has values outside int8"):
        replace(graph, constants=wide)
    tensors = {**graph.tensors, "h": replace(graph.tensors["h"], shape=(5, 5, 2))}
    with pytest.raises(ThimbleError, match=r"h makes \(5, 4, 2\), but h is \(5, 5, 2\)"):
        replace(graph, tensors=tensors)


def test_types() -> None:
    assert (DType.parse("uint4").maximum, DType.parse("int4").minimum) == (15, -8)
    assert str(DType.parse("int16")) == "int16"
    with pytest.raises(ThimbleError, match="unknown integer type 'int7'"):
        DType.parse("int7")
