"""A window that slides as a network with states: each call has the outputs of the window that ends
with its rows, nothing made twice where that is exact; streams of images and sounds for it."""

from typing import Any

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.frontends.mfcc import Mfcc
from pipeline.frontends.none import NoFrontend
from pipeline.frontends.square_wave import SquareWave
from pipeline.graph.graph import Graph
from pipeline.sliding import Windows, _Stream
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from tests.boards import load_hardware
from tests.comparing import equal
from tests.graphs import Chained, Net
from tests.importers.test_states import in_sequence
from tests.strategies.chains import Chain
from tests.tiers import quick

VALID = (0, 0, 1, 1)
"""No padding along time."""


def spotter(frames: int = 16, seed: int = 1) -> Graph:
    """Convolutions without padding in time, one of them with a stride, and a dense end."""
    net = Chained(Net((frames, 6, 1), np.random.default_rng(seed), name="spotter"))
    net.conv(4, padding=VALID, stride=(2, 1)).conv(5, padding=VALID).dense(7).dense(3).softmax()
    return net.graph()


def padded(seed: int = 2) -> Graph:
    """As ``spotter``, but its second convolution pads in time."""
    net = Chained(Net((12, 6, 1), np.random.default_rng(seed), name="padded"))
    return net.conv(4, padding=VALID).conv(4).dense(3).graph()


def pooled(seed: int = 3) -> Graph:
    """A global pool at its end, whose stride is that of one window alone; a sum before it."""
    net = Net((9, 4, 2), np.random.default_rng(seed), name="pooled")
    first = net.conv(4, (2, 3), padding=VALID)
    net.plus(first, net.conv(4, (1, 1)))
    net.mean((8, 4), stride=(8, 4))
    net.conv(3, (1, 1))
    return net.graph()


def units(frames: int) -> Graph:
    """A residual unit of 4 bits, which leaves 2 rows of 13 frames, or 1 of 11."""
    chain = Chain((frames, 9, 1), "uint8").average("pooled", 4, kernel=(1, 1), stride=(1, 1))
    chain.conv("first", 4, stride=(2, 1)).middle("middle", 2)
    chain.last = "first"
    return chain.conv("a", 4).conv("b", 4).plus("sum", "middle").dense("out", 3).graph()


def stream(one: Graph, rows: int, calls: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Frames of calls, and what ``one`` has of each window that is whole by then, the last ones.
    What comes behind the rows that it reads it is not asked for."""
    image, read = one.tensors[one.input], _Stream(rows, one)
    read.graph()
    height = read.end[image.name]
    low, high = image.dtype.minimum, image.dtype.maximum + 1
    every = np.random.default_rng(4).integers(low, high, (calls * rows, *image.shape[1:]))
    ends = [rows * n for n in range(1, calls + 1) if rows * n >= height]
    padded = np.pad(every, ((0, image.shape[0] - height), (0, 0), (0, 0)))
    windows = [padded[end - height : end - height + image.shape[0]] for end in ends]
    wanted = one.evaluate(np.stack(windows))
    return every.reshape(calls, rows, *image.shape[1:]), wanted


def last_ones(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    return found.reshape(len(found), -1)[-len(wanted) :].reshape(wanted.shape)


NETS = (spotter(), padded(), pooled(), units(13), units(11))


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
@pytest.mark.parametrize("one", NETS, ids=["spotter", "padded", "pooled", "units", "unit"])
def test_each_call_has_its_windows_outputs(one: Graph, rows: int) -> None:
    graph = Windows(rows).graph(one)
    frames, wanted = stream(one, rows, 16)
    equal(last_ones(graph.evaluate(frames), wanted), wanted)


@pytest.mark.parametrize(("one", "rows"), quick(0, [*zip(NETS, (4, 2, 1, 2), strict=False)], ci=4))
def test_plans_over_calls(one: Graph, rows: int) -> None:
    graph, board = Windows(rows).graph(one), load_hardware()
    for strategy in (Ordinary(), Joint()):
        in_sequence(strategy.plan(graph, board), graph, stream(one, rows)[0])


def test_without_padding_in_time_no_row_is_made_twice() -> None:
    """Of the spotter's image 1 row stays (kernel 3, stride 2), 2 of the first convolution, 4 of
    what the dense layer reads; of residual units what their kernels and sums read."""
    one = spotter()
    graph = Windows(2).graph(one)
    first, second, *ends = one.operators
    rows = sum(op.macs(one.tensors) / one.tensors[op.output].shape[0] for op in (first, second))
    assert graph.macs == rows + sum(op.macs(one.tensors) for op in ends)
    kept = {each.read: graph.tensors[each.read].shape[0] for each in graph.states}
    assert kept == {"image.old": 1, "conv0.old": 2, "conv1.old": 4}
    for unit in NETS[3:]:
        assert Windows(2).graph(unit).macs < unit.macs / 2


def test_what_pads_in_time_is_computed_again() -> None:
    one = padded()
    first, *others = one.operators
    again = sum(op.macs(one.tensors) for op in others)
    assert Windows(1).graph(one).macs == again + first.macs(one.tensors) / 10


def test_more_rows_than_a_window_has_and_an_input_without_rows() -> None:
    one = spotter()
    assert Windows().graph(one) is one
    net = Net((8,), np.random.default_rng(5))
    net.dense(3)
    for graph, rows in ((one, 16), (net.graph(), 1)):
        with pytest.raises(ThimbleError, match=r"sliding.rows=.*some of the rows of an image"):
            Windows(rows).graph(graph)


EAR = SquareWave(bins=4, frames=6, chunk=64, history=2)


@pytest.mark.parametrize("ear", [EAR, Mfcc(frames=3)])
def test_sounds_follow_each_other_behind_silence(ear: Any) -> None:
    random = np.random.default_rng(1)
    sounds = random.integers(-9_000, 9_000, (3, ear.samples)).astype(np.int16)
    labels = np.arange(3, dtype=np.uint8)
    data = {"test_sounds": sounds, "test_images": ear.features(sounds), "test_labels": labels}
    one = spotter()
    assert Windows().data(data, ear, one) is data and Windows().frontend(ear) is ear
    found, each = Windows(2).data(data, ear, one), 2 * ear.hop
    own = Windows().data(data, Windows(2).frontend(ear), Windows(2).graph(one))  # its own states
    equal(own["test_sounds"], found["test_sounds"])
    equal(own["test_images"], found["test_images"])
    assert found["test_sounds"].shape == (3, each) and not len(found["test_labels"])
    equal(found["test_sounds"].reshape(-1), sounds.reshape(-1)[: 3 * each])
    assert found["test_images"].shape == (3, 2, *ear.shape[1:])
    behind = np.concatenate([np.zeros(ear.early, np.int16), sounds[0]])[None, : ear.samples]
    equal(found["test_images"].reshape(-1, *ear.shape[1:])[: ear.shape[0]], ear.features(behind)[0])
    assert Windows(2).frontend(ear).shape == (2, *ear.shape[1:])


def test_images_follow_each_other() -> None:
    images = np.random.default_rng(2).integers(0, 256, (2, 5, 3, 2)).astype(np.uint8)
    ear = NoFrontend()
    given = {"test_images": images, "test_labels": np.zeros(2, np.uint8)}
    found = Windows(2).data(given, ear, spotter())
    equal(found["test_images"].reshape(4, 3, 2), images[0, :4])
    none = {"test_images": np.zeros((0, 5, 3, 2), np.uint8), "test_labels": np.zeros(0, np.uint8)}
    assert Windows(2).data(none, ear, spotter()) is none and Windows(2).frontend(ear) is ear
