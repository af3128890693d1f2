"""Neighbouring windows as one graph, with the outputs of each, nothing twice where that is exact;
what is tried with several: longer sounds and images, without labels."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.frontends.none import NoFrontend
from pipeline.frontends.square_wave import SquareWave
from pipeline.graph.graph import Graph
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.placing import Rearrange
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from pipeline.sliding import Windows
from pipeline.strategies.sliding import Sliding
from tests.codegen.int8.support import host
from tests.graphs import Net
from tests.strategies.chains import Chain

VALID = (0, 0, 1, 1)
"""No padding along time."""


def spotter(frames: int = 16, seed: int = 1) -> Graph:
    """Convolutions without padding in time, one of them with a stride, and a dense end."""
    net = Net((frames, 6, 1), np.random.default_rng(seed), name="spotter")
    net.conv(4, (3, 3), padding=VALID, stride=(2, 1))
    net.conv(5, (3, 3), padding=VALID)
    net.dense(7)
    net.dense(3)
    net.softmax()
    return net.graph()


def padded(seed: int = 2) -> Graph:
    """As ``spotter``, but its second convolution pads in time."""
    net = Net((12, 6, 1), np.random.default_rng(seed), name="padded")
    net.conv(4, (3, 3), padding=VALID)
    net.conv(4, (3, 3))
    net.dense(3)
    return net.graph()


def pooled(seed: int = 3) -> Graph:
    """A global pool at its end, whose stride is that of one window alone; a sum before it."""
    net = Net((9, 4, 2), np.random.default_rng(seed), name="pooled")
    first = net.conv(4, (2, 3), padding=VALID)
    net.plus(first, net.conv(4, (1, 1)))
    net.mean((8, 4), stride=(8, 4))
    net.conv(3, (1, 1))
    return net.graph()


def one_by_one(one: Graph, frames: np.ndarray, windows: Windows) -> np.ndarray:
    """(n, windows, outputs) of windows that are each computed alone."""
    rows = one.tensors[one.input].shape[0]
    each = [
        one.evaluate(frames[:, at : at + rows])
        for at in range(0, windows.windows * windows.rows, windows.rows)
    ]
    return np.stack([outputs.reshape(len(frames), -1) for outputs in each], axis=1)


def noise(graph: Graph, count: int = 3) -> np.ndarray:
    return np.random.default_rng(4).integers(-128, 128, (count, *graph.tensors[graph.input].shape))


@pytest.mark.parametrize(
    ("one", "windows"),
    [
        (spotter(), Windows(4, 2)),
        (spotter(), Windows(3, 4)),
        (spotter(), Windows(3, 3)),  # no multiple of the stride: nothing is shared
        (padded(), Windows(3, 1)),
        (pooled(), Windows(3, 2)),
    ],
    ids=lambda value: getattr(value, "name", None) or f"{value.windows}x{value.rows}",
)
def test_each_window_has_its_own_outputs(one: Graph, windows: Windows) -> None:
    every = windows.graph(one)
    frames = noise(every)
    assert every.tensors[every.input].shape[0] == one.tensors[one.input].shape[0] + windows.more
    wanted = one_by_one(one, frames, windows)
    assert (every.evaluate(frames).reshape(wanted.shape) == wanted).all()


def test_without_padding_in_time_no_row_is_computed_twice() -> None:
    one, windows = spotter(), Windows(4, 2)
    every = windows.graph(one)
    assert not any(isinstance(op, Rearrange) for op in every.operators)
    assert [op.name for op in every.operators] == [op.name for op in one.operators]
    first, more = (every.tensors[op.output].shape for op in every.operators[:2])
    assert (first[0], more[0]) == (7 + 3, 5 + 3)
    new = (every.macs - one.macs) / 3
    dense = sum(op.macs(one.tensors) for op in one.operators[2:])
    rows = sum(op.macs(one.tensors) / one.tensors[op.output].shape[0] for op in one.operators[:2])
    assert new == rows + dense
    end = every.operators[2]  # a convolution over all of a window
    assert isinstance(end, Conv2d)
    assert every.tensors[end.parameters[0]].shape == (7, 5, 6, 5)
    assert every.tensors[every.output].shape == (4, 1, 3)


@pytest.mark.parametrize("frames", [13, 11])  # the unit leaves 2 rows of a window, or 1
def test_of_residual_units_nothing_is_computed_twice(frames: int) -> None:
    chain = Chain((frames, 9, 1), "uint8").average("pooled", 4, kernel=(1, 1), stride=(1, 1))
    chain.conv("first", 4, stride=(2, 1)).middle("middle", 2)
    chain.last = "first"
    one, windows = chain.conv("a", 4).conv("b", 4).plus("sum", "middle").dense("out", 3).graph(), 3
    every = Windows(windows, 4).graph(one)
    assert [op.name for op in every.operators] == [op.name for op in one.operators]
    given = np.random.default_rng(5).integers(0, 256, (4, *every.tensors[every.input].shape))
    wanted = one_by_one(one, given, Windows(windows, 4))
    assert (every.evaluate(given).reshape(wanted.shape) == wanted).all()
    board = replace(host(), streams_input=True)
    plan = Sliding().plan(every, board)
    verify(plan, every)
    assert (interpret(plan, every, given[0]).output == every.evaluate(given)[0]).all()


def test_what_pads_in_time_is_computed_again() -> None:
    one, windows = padded(), Windows(3, 1)
    every = windows.graph(one)
    names = [op.name for op in every.operators]
    assert names.count("conv0") == 1 and {"conv1.0", "conv1.1", "conv1.2"} <= set(names)
    again = sum(op.macs(one.tensors) for op in one.operators[1:])
    first = one.operators[0].macs(one.tensors)
    assert every.macs == pytest.approx(3 * again + first * 12 / 10)
    assert every.tensors[every.output].shape == (9,)


def test_what_a_new_window_costs() -> None:
    """One window is the network as it is."""
    one = spotter()
    assert Windows().graph(one) is one
    assert Windows().measured({}, one.macs, one.macs, 20_000, 16_000_000) == {}
    device = {"first_cycles": {"median": 9_000}, "compute_cycles": {"median": 15_000}}
    found = Windows(4, 2).measured(device, 700, 400, 12_500.0, 1_000_000)
    assert found == {
        "windows": 4, "macs_window": 400, "macs_new": 100, "new_us": 25_000.0,
        "cycles_window": 9_000, "cycles_new": 2_000, "cycles_new_10ms": 800,
        "realtime_factor_new": 0.08,
    }  # fmt: skip
    assert "cycles_new" not in Windows(4, 2).measured({}, 700, 400, 12_500.0, 1_000_000)
    assert "new_us" not in Windows(4, 2).measured(device, 700, 400, 0.0, 1_000_000)


def test_numbers_that_mean_nothing_and_an_input_without_rows() -> None:
    for windows, rows in ((0, 1), (2, 0), (-1, 3)):
        with pytest.raises(ThimbleError, match=r"1 at least"):
            Windows(windows, rows)
    net = Net((8,), np.random.default_rng(5))
    net.dense(3)
    with pytest.raises(ThimbleError, match=r"windows slide over rows of an image"):
        Windows(2, 1).graph(net.graph())


EAR = SquareWave(bins=4, frames=6, chunk=64, history=2)


def heard() -> dict[str, Any]:
    sounds = np.random.default_rng(1).integers(-9_000, 9_000, (3, EAR.samples)).astype(np.int16)
    labels = np.arange(3, dtype=np.uint8)
    return {"test_sounds": sounds, "test_images": EAR.features(sounds), "test_labels": labels}


def test_each_sound_is_followed_by_the_next_and_images_have_more_rows() -> None:
    data = heard()
    assert Windows(1, 2).data(data, EAR) is data and Windows(1, 2).first_bytes(data, EAR) == 0
    found = Windows(3, 2).data(data, EAR)
    assert found["test_sounds"].shape == (3, 416 + 4 * 64)
    assert (found["test_sounds"][:, :416] == data["test_sounds"]).all()
    assert (found["test_sounds"][2, 416:] == data["test_sounds"][0, : 4 * 64]).all()
    assert found["test_images"].shape == (3, 10, 4, 1)
    assert (found["test_images"][:, :6] == data["test_images"]).all()
    assert not len(found["test_labels"])
    assert Windows(3, 2).first_bytes(found, EAR) == 2 * 416
    images = np.random.default_rng(2).integers(0, 256, (2, 5, 3, 2)).astype(np.uint8)
    data = {"test_images": images, "test_labels": np.zeros(2, np.uint8)}
    found = Windows(4, 2).data(data, NoFrontend())
    assert found["test_images"].shape == (2, 11, 3, 2)
    assert (found["test_images"][0, 5:10] == images[1]).all()
    assert (found["test_images"][0, 10] == images[0, 0]).all()
    assert Windows(4, 2).first_bytes(found, NoFrontend()) == 5 * 3 * 2
    with pytest.raises(ThimbleError, match=r"counts 32,767 samples.*fewer sliding.windows"):
        Windows(300, 2).data(heard(), EAR)
    none = {"test_images": np.zeros((0, 5, 3, 2), np.uint8), "test_labels": np.zeros(0, np.uint8)}
    assert Windows(2, 2).data(none, EAR) is none
