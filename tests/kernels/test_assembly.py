"""Kernels in assembly, for an AVR and in Thumb-1: what they accept, with how much scratch, which
bytes of a row they read before they write which; and how sums end on a Cortex-M: the reach of a
channel's sums, against products one by one, and their end by two products of 32 bits, for which
every sum of a layer, not only those where what is stored rises, gives what the graph does."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.graph.graph import Graph
from pipeline.graph.operator import clipped_to
from pipeline.graph.operators.conv2d import Conv2d, Dense
from pipeline.graph.requant import FixedPoint, PowerOfTwo
from pipeline.graph.tensor import IntArray
from pipeline.kernels import Form, avr, choose, named, offers, thumb
from pipeline.kernels.avr.rows import AvrRows
from pipeline.kernels.quick import channel_sums
from pipeline.kernels.thumb.conv2d import instructions
from pipeline.kernels.thumb.depthwise import MOST_WORDS, entry_words, strip_of, together
from pipeline.kernels.thumb.ending import ANY, SUMS, UNIT, Narrow, narrow_end
from pipeline.kernels.widened import cheapest
from pipeline.search.layouts import form_of_a_row
from tests.codegen.avr.test_layers import MEGA, OWN, chosen, layers, least_zero
from tests.codegen.cortex_m.layers import KINDS
from tests.comparing import equal
from tests.graphs import Chained, Net
from tests.kernels.test_contract import allowed, conflicts
from tests.passes.growers import MAKERS
from tests.targets.conftest import load_hardware


def form(add: Callable[[Net], object], *shape: int) -> Form:
    """Return the form of the last operator that ``add`` makes."""
    net = Net(shape, np.random.default_rng(0))
    add(net)
    graph = net.graph()
    return Form.whole(graph.operators[-1], graph)


THUMB = load_hardware("nucleo_g0b1re")


def test_who_has_them() -> None:
    """AVRs with weights in flash; cores of Arm's without the DSP extension."""
    boards = {name: load_hardware(name) for name in ("nucleo_f446re", "nucleo_u575zi")}
    assert avr.has_assembly(MEGA) and thumb.has_thumb(THUMB)
    assert not avr.has_assembly(load_hardware("arduino_mega", weights_in="sram"))
    assert not avr.has_assembly(replace(MEGA, kernels="portable"))
    assert not thumb.has_thumb(replace(THUMB, kernels="portable"))
    assert not any(avr.has_assembly(each) or thumb.has_thumb(each) for each in boards.values())
    for kernels in (avr.KERNELS, thumb.KERNELS):
        assert len({kernel.name for kernel in kernels}) == len(kernels)


@pytest.mark.parametrize("seed", range(6))
def test_the_fastest_are_chosen(seed: int) -> None:
    graph = layers(seed)
    assert set(chosen(graph)) == OWN
    cases = [(Form.whole(op, graph), MEGA) for op in graph.operators]
    for kind in ("conv2d", "pointwise", "depthwise", "dense"):
        graph = KINDS[kind](np.random.default_rng(seed))
        cases.append((Form.whole(graph.operators[-1], graph), THUMB))
    for whole, board in cases:
        found = choose(whole, board)
        assert named(found.name, whole, board) == found
        assert found.cycles(whole) == min(each.cycles(whole) for each in offers(whole, board))


def test_padding_of_another_zero_point_is_portable_on_an_avr() -> None:
    padded = form(lambda net: Chained(net).conv(4, (1, 1)).depthwise(), 5, 5, 3)
    assert choose(padded, MEGA).name == "int8.conv2d"
    assert "zero point" in avr.Depthwise().why_not(padded)


def test_sums_have_24_bits_on_an_avr() -> None:
    for scale, fits in ((2.0**-8, True), (2.0**-19, False)):
        requant = FixedPoint.of(np.full(3, scale))
        made = form(lambda net, r=requant: net.conv(3, (1, 1), requant=r), 2, 2, 600)
        assert avr.Convolution().accepts(made) == fits
    large = form(lambda net: net.conv(2, (1, 1)), 1, 1, 1020)
    weights = {
        n: np.full_like(v, 127) if v.ndim == 4 else v for n, v in large.graph.constants.items()
    }
    large = Form.whole(large.op, replace(large.graph, constants=weights))
    assert "24 bits" in avr.Convolution().why_not(large)


def of_a_row(kind: str, columns: int) -> tuple[Graph, AvrRows]:
    net = Net((4, columns, 3), np.random.default_rng(columns))
    least_zero(net)
    net.tensors["image"] = replace(net.tensors["image"], zero_point=-128)
    if kind == "depthwise":
        net.depthwise()
        return net.graph(), avr.Depthwise()
    net.conv(3, (1, 1) if kind == "pointwise" else (3, 3))
    return net.graph(), avr.Convolution()


@pytest.mark.parametrize("kind", ["pointwise", "window", "depthwise"])
@pytest.mark.parametrize("columns", [2, 5, 6, 7, 13])
def test_a_row_over_what_it_is_made_of(kind: str, columns: int) -> None:
    graph, kernel = of_a_row(kind, columns)
    row = form_of_a_row(graph.operators[0], graph, {})
    turns = kernel.access_order(row)
    assert not any(conflicts(turns, apart) for apart in allowed(turns))
    parts = kernel.parts(row)
    assert [p.start for p in parts] == [0, *(p.stop for p in parts[:-1])]
    assert parts[-1].stop == columns and max(map(len, parts)) <= kernel.most_pixels
    exactly = kind == "pointwise" or len(parts) == 1
    assert turns.safe.at == (0,) * exactly
    safe = kernel.overlap(row, "image")
    assert safe is not None and (0 in safe.at or safe.forwards >= 0) == exactly
    whole = Form.whole(graph.operators[0], graph)
    assert kernel.accepts(whole) and kernel.overlap(whole, "image") is None


def test_scratch_of_a_convolution_is_a_word_an_element_and_pixel() -> None:
    made = form(lambda net: net.conv(6), 8, 8, 5)
    assert thumb.Convolution().scratch_bytes(made) == 4 * 4 * 45


def test_pixels_of_an_image_and_outputs_of_a_row_are_made_together() -> None:
    for pixels, at_once in ((1, 1), (3, 3), (4, 4), (9, 3), (125, 4), (6, 3)):
        assert cheapest(pixels, SUMS, instructions) == at_once
    for columns, at_once in ((1, 1), (3, 3), (5, 4), (6, 3), (7, 4), (48, 4)):
        assert together(columns) == at_once


def test_scratch_of_a_depthwise_layer_is_some_rows_of_a_channel() -> None:
    whole = form(Net.depthwise, 8, 8, 5)
    strip = strip_of(whole)
    assert (strip.rows, strip.given, strip.pitch) == (8, 10, 10)
    assert entry_words(whole) in (14, 16)
    assert thumb.Depthwise().scratch_bytes(whole) == 4 * (100 + entry_words(whole))
    strip = strip_of(form(lambda net: net.depthwise(stride=(2, 2)), 60, 48, 2))
    assert strip.phases == 2 and strip.columns == 25
    assert 1 < strip.rows < 30 and strip.words <= MOST_WORDS < strip.words + 2 * strip.pitch
    safe = thumb.Depthwise().overlap(form_of_a_row(whole.op, whole.graph, {}), "image")
    assert safe is not None and safe.at == (0,) and not safe.aside_bytes


def test_kernels_beyond_reach_are_portable() -> None:
    made = form(lambda net: net.depthwise((5, 5)), 12, 12, 4)
    assert not thumb.Depthwise().accepts(made)
    assert choose(made, THUMB).name == "int8.conv2d"


def test_dense_layers_may_write_over_their_input() -> None:
    whole = form(lambda net: net.dense(12), 40)
    safe = thumb.DenseLayer().overlap(whole, "input")
    assert safe is not None and safe.forwards == 80
    assert thumb.DenseLayer().scratch_bytes(whole) == 40 * 8
    assert not thumb.DenseLayer().accepts(form(lambda net: net.dense(3), 40))


def layer(
    seed: int, scales: IntArray | None = None, dtype: str = "int8", zero_point: int | None = None,
    depth: int = 6, once: bool = False,
) -> tuple[Graph, Conv2d]:  # fmt: skip
    net = Net((2, 2, depth), np.random.default_rng(seed), dtype)
    requant = None if scales is None else FixedPoint.of(scales)
    if once and scales is not None:
        requant = FixedPoint.rounding_once(scales, depth << 16)
    net.conv(3, (1, 1), requant=requant)
    if zero_point is not None:
        net.tensors[net.last] = replace(net.tensors[net.last], zero_point=zero_point)
    graph = net.graph()
    op = graph.operators[-1]
    assert isinstance(op, Conv2d)
    return graph, op


def every_sum(op: Conv2d, graph: Graph, most: int = 100_000) -> IntArray:
    """(n, channels), biases included; of many as many as ``most``, both ends among them."""
    sums = channel_sums(op, graph) + graph.constants[op.parameters[1]][:, None]
    count = min(most, int((sums[:, 1] - sums[:, 0]).max()) + 1)
    steps = np.linspace(0.0, 1.0, count)[:, None]
    return np.rint(sums[:, 0] + steps * (sums[:, 1] - sums[:, 0])).astype(np.int64)


def checked(op: Conv2d, graph: Graph) -> Narrow | None:
    found = narrow_end(op, graph)
    if found is not None:
        sums = every_sum(op, graph)
        wanted = clipped_to(graph.tensors[op.output], op.clip, op.requant.apply(sums))
        equal(found.stored(sums), wanted & 255)
        # what the assembly multiplies fits its registers
        most, part, *_ = found.constants.T
        inside = most < ANY
        assert ((most[inside] >> found.coarse) * part[inside] < 1 << 32).all()
        assert (part < 1 << found.bits).all()
    return found


@settings(max_examples=30)
@given(
    st.integers(0, 10_000), st.floats(-13.0, 1.0), st.sampled_from(["int8", "uint8"]),
    st.integers(0, 255), st.booleans(),
)  # fmt: skip
def test_every_sum_ends_as_in_the_graph(
    seed: int, exponent: float, dtype: str, zero: int, once: bool
) -> None:
    rng = np.random.default_rng(seed)
    scales = 2.0**exponent * rng.uniform(0.5, 1.0, 3)
    zero_point = zero - 128 if dtype == "int8" else zero
    graph, op = layer(seed, scales, dtype, zero_point, once=once)
    checked(op, graph)


def test_typical_layers_have_one() -> None:
    found = [checked(*reversed(layer(seed))) for seed in range(15)]
    assert sum(end is not None for end in found) >= 14


def test_results_below_the_zero_point_take_a_step() -> None:
    scales = np.array([0.0021, 0.0017, 0.0013])
    graph, op = layer(1, scales, zero_point=0)
    found = checked(op, graph)
    assert found is not None and found.steps is not None
    first, step = found.steps.T
    assert (first > 0).all() and (step != 0).all() and (abs(step) < 1 << UNIT).all()
    graph, op = layer(1, scales, zero_point=-128)
    found = checked(op, graph)
    assert found is not None and found.steps is None


def test_a_channel_that_decides_nothing_is_a_constant() -> None:
    graph, op = layer(3, np.array([0.002, 2.0**-30, 0.003]), zero_point=5)
    found = checked(op, graph)
    assert found is not None
    most, part, whole, offset = found.constants[1]
    assert (most, part, whole, offset >> UNIT) == (ANY, 0, 0, 5)


def test_shifts_that_round_halves_to_even_have_none() -> None:
    graph, op = layer(0)
    object.__setattr__(op, "requant", PowerOfTwo(right_shift=7))
    assert narrow_end(op, graph) is None


@pytest.mark.parametrize("exponent, fits", [(-8, True), (-20, False)])
def test_sums_of_many_bits_do_not_fit(exponent: int, fits: bool) -> None:
    """2 ** 24 times a small scale is too coarse for a sum of many bits."""
    graph, op = layer(2, np.full(3, 0.7 * 2.0**exponent), depth=4000)
    assert (checked(op, graph) is not None) == fits


@pytest.mark.parametrize("kind", [Conv2d, Dense])
def test_sums_of_the_least_and_the_largest_products(kind: type[Conv2d | Dense]) -> None:
    rng = np.random.default_rng(6)
    for _ in range(20):
        op, tensors, values = MAKERS[kind](rng)
        assert isinstance(op, Conv2d | Dense)
        source, (weight, *_) = tensors[op.inputs[0]], op.parameters
        constants = {name: values[name] for name in op.parameters}
        found = channel_sums(
            op, Graph("net", tensors, (op,), constants, (source.name,), (op.output,))
        )
        ends = [n - source.zero_point for n in (source.dtype.minimum, source.dtype.maximum)]
        for channel, row in enumerate(constants[weight].reshape(len(found), -1).tolist()):
            products = [[w * end for end in ends] + [0] for w in row]
            assert found[channel].tolist() == [sum(map(min, products)), sum(map(max, products))]
