"""What kernels in Thumb-1 assembly accept, and with how much scratch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.kernels import Form, choose, named, offers
from pipeline.kernels.cortex_m.conv2d import cheapest
from pipeline.kernels.thumb import KERNELS, Convolution, DenseLayer, Depthwise, has_thumb
from pipeline.kernels.thumb.base import SUMS
from pipeline.kernels.thumb.conv2d import instructions
from pipeline.kernels.thumb.depthwise import MOST_WORDS, entry_words, strip_of, together
from tests.codegen.cortex_m.layers import KINDS
from tests.graphs import Net
from tests.targets.conftest import load_hardware

BOARD = load_hardware("nucleo_g0b1re")


def form(net: Net) -> Form:
    graph = net.graph()
    return Form.whole(graph.operators[-1], graph)


def net(*shape: int) -> Net:
    return Net(shape, np.random.default_rng(0))


def test_they_are_for_cores_without_the_extension() -> None:
    assert has_thumb(BOARD)
    assert not has_thumb(replace(BOARD, kernels="portable"))
    assert not any(map(has_thumb, map(load_hardware, ("nucleo_f446re", "nucleo_u575zi"))))


@pytest.mark.parametrize("kind", ["conv2d", "pointwise", "depthwise", "dense"])
def test_the_fastest_is_chosen_and_has_one_name(kind: str) -> None:
    for seed in range(6):
        graph = KINDS[kind](np.random.default_rng(seed))
        whole = Form.whole(graph.operators[-1], graph)
        found = choose(whole, BOARD)
        assert named(found.name, whole, BOARD) == found
        assert found.cycles(whole) == min(each.cycles(whole) for each in offers(whole, BOARD))
    assert len({kernel.name for kernel in KERNELS}) == len(KERNELS)


def test_scratch_of_a_convolution_is_a_word_an_element_and_pixel() -> None:
    made = net(8, 8, 5)
    made.conv(6, (3, 3))
    assert Convolution().scratch_bytes(form(made)) == 4 * 4 * 45


@pytest.mark.parametrize("pixels, at_once", [(1, 1), (3, 3), (4, 4), (9, 3), (125, 4), (6, 3)])
def test_pixels_are_computed_together(pixels: int, at_once: int) -> None:
    assert cheapest(pixels, SUMS, instructions) == at_once


@pytest.mark.parametrize("columns, at_once", [(1, 1), (3, 3), (5, 4), (6, 3), (7, 4), (48, 4)])
def test_outputs_of_a_row_are_made_together(columns: int, at_once: int) -> None:
    assert together(columns) == at_once


def test_scratch_of_a_depthwise_layer_is_some_rows_of_a_channel() -> None:
    made = net(8, 8, 5)
    made.depthwise()
    whole = form(made)
    strip = strip_of(whole)
    assert (strip.rows, strip.given, strip.pitch) == (8, 10, 10)
    assert entry_words(whole) in (14, 16)
    assert Depthwise().scratch_bytes(whole) == 4 * (100 + entry_words(whole))


def test_a_large_image_has_several_strips() -> None:
    made = net(60, 48, 2)
    made.depthwise(stride=(2, 2))
    strip = strip_of(form(made))
    assert strip.phases == 2 and strip.columns == 25
    assert 1 < strip.rows < 30 and strip.words <= MOST_WORDS < strip.words + 2 * strip.pitch


def test_kernels_beyond_reach_are_portable() -> None:
    made = net(12, 12, 4)
    made.depthwise((5, 5))
    assert not Depthwise().accepts(form(made))
    assert choose(form(made), BOARD).name == "int8.conv2d"


def test_dense_layers_may_write_over_their_input() -> None:
    made = net(40)
    made.dense(12)
    whole = form(made)
    gap = DenseLayer().overlap(whole, "input")
    assert gap is not None and gap.forwards == 80
    assert DenseLayer().scratch_bytes(whole) == 40 * 8
    few = net(40)
    few.dense(3)
    assert not DenseLayer().accepts(form(few))
