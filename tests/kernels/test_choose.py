"""Kernels that a board offers for a form, and why others are not; tiles as images of their own."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.requant import FixedPoint, PowerOfTwo
from pipeline.graph.tensor import DType
from pipeline.hardware import Hardware
from pipeline.kernels import Form, choose, named, offers
from pipeline.kernels.choose import block_pixels
from pipeline.kernels.int8 import LookedUpAdd
from pipeline.kernels.own_image import own_image
from pipeline.plan.maps import Affine, Rows
from pipeline.plan.vocabulary import Buffer, Compute, Slice, packed
from tests.codegen.cortex_m.support import core
from tests.codegen.int8.support import host
from tests.codegen.support import uno
from tests.comparing import equal
from tests.graphs import Chained, Net


def built(add: Callable[[Net], object], *shape: int, dtype: str = "int8") -> Graph:
    net = Net(shape or (4, 4, 2), np.random.default_rng(0), dtype, "net")
    add(net)
    return net.graph()


CONVOLVED = built(lambda net: net.conv(8), 6, 6, 4)
SEVERAL = FixedPoint.of([0.5, 0.25])


def typed(graph: Graph, name: str, dtype: str, zero_point: int = 0) -> Graph:
    tensor = replace(graph.tensors[name], dtype=DType.parse(dtype), zero_point=zero_point)
    return replace(graph, tensors={**graph.tensors, name: tensor})


def form_of(graph: Graph, overlaps: tuple[str, ...] = (), **op: object) -> Form:
    last = graph.operators[-1]
    changed = replace(last, **op) if op else last  # type: ignore[arg-type]
    return replace(Form.whole(last, graph, overlaps), op=changed)


def of(add: Callable[[Net], object], *shape: int, dtype: str = "int8", over: str = "") -> Form:
    """The last operator that ``add`` makes, over the tensor ``over``."""
    return form_of(built(add, *shape, dtype=dtype), (over,) if over else ())


def cut(form: Form, name: str, extents: tuple[int, ...], **changes: object) -> Form:
    part = replace(form.parts[name], extents=extents, **changes)  # type: ignore[arg-type]
    return replace(form, parts={**form.parts, name: part})


def ring(axis: int, rows: int) -> Form:
    """A convolution of an image that turns along ``axis``."""
    rings = tuple(rows * (n == axis) for n in range(3))
    around = tuple(n == axis for n in range(3))
    return cut(form_of(CONVOLVED), "image", (6, 6, 4), rings=rings, around=around)


def total(net: Net) -> None:
    net.plus("image", net.lookup())


def scaled(net: Net) -> None:
    net.times("image", net.rescaled_mean())


def shifted(zero: int = 0, **changes: object) -> Form:
    """Return a form of 4 bits, with weights of 8 and their zero point."""
    graph = built(lambda net: net.conv(8, requant=PowerOfTwo(right_shift=7)), 6, 6, 4)
    graph = typed(graph, "conv0.weight", "int8", zero)
    return form_of(typed(typed(graph, "conv0", "uint4"), "image", "uint4"), **changes)  # type: ignore[arg-type]


def summed(form: Form) -> Form:
    return replace(form, partial=True)


REFUSED: dict[str, Callable[[], Form]] = {
    "conv0: its weights are int16; code for this core takes int8": lambda: form_of(
        typed(CONVOLVED, "conv0.weight", "int16")),
    "has weights with zero point 0": lambda: shifted(zero=3),
    "multiplies int32 elements": lambda: form_of(typed(CONVOLVED, "image", "int32")),
    "cannot follow the ring of image along axis 2": lambda: ring(2, 3),
    "no code for partial sums of Lookup": lambda: summed(of(Net.lookup)),
    "padded averages in one step": lambda: summed(
        of(lambda net: net.mean((2, 2), padding=(1, 0, 1, 0)))),
    "a table is for elements of 8 bits, not int16": lambda: of(Net.lookup, dtype="int16"),
    "one multiplier, not several": lambda: form_of(built(total), requant=SEVERAL),
    "lookup0 has several multipliers": lambda: form_of(
        built(total), operand_requants=(FixedPoint.of([0.5]), SEVERAL)),
    "overwrites mean0, which is read again": lambda: of(scaled, over="mean0"),
    "pads apart from its input": lambda: of(
        lambda net: net.pad(((1, 1), (1, 1), (0, 0))), over="image"),
    "repeats elements apart from its input": lambda: of(
        lambda net: net.rearrange((8, 4, 2), (1, 0, 2), repeats=(1, 2, 1)), over="image"),
    "reshapes a tensor all at once": lambda: cut(
        of(lambda net: net.reshape((32,))), "reshape0", (16,)),
    "computes rows of a softmax whole": lambda: cut(of(Net.softmax, 4, 8), "softmax0", (4, 4)),
    "a softmax over 5000 values, 4095 are possible": lambda: of(Net.softmax, 1, 5000),
    "requantizes by shifts (quantize=int4), not by FixedPoint": lambda: shifted(
        requant=FixedPoint.of([0.1])),
    "no grouped convolution but depthwise ones (groups=2)": lambda: shifted(groups=2),
    "this plan splits them": lambda: cut(shifted(), "conv0", (6, 6, 2)),
    ": this plan splits them": lambda: summed(shifted()),
}  # fmt: skip


@pytest.mark.parametrize("words", REFUSED)
def test_what_no_kernel_takes_says_why(words: str) -> None:
    with pytest.raises(ThimbleError) as error:
        choose(REFUSED[words](), host())
    assert words.removeprefix(": ") in str(error.value) and "\n" not in str(error.value)


def chosen(graph: Graph, hardware: Hardware) -> list[str]:
    return [choose(Form.whole(op, graph), hardware).name for op in graph.operators]


@pytest.mark.parametrize(("cpu", "own"), [("cortex-m4", "cortex_m"), ("cortex-m0plus", "thumb")])
def test_the_fastest_that_accepts_is_chosen_and_may_be_left_out(cpu: str, own: str) -> None:
    graph = built(lambda net: Chained(net).conv(8).depthwise().dense(10), 8, 8, 8)
    board = core(cpu)
    assert chosen(graph, board) == [f"{own}.{word}" for word in ("conv2d", "depthwise", "dense")]
    small, form = replace(board, kernels="portable"), Form.whole(graph.operators[0], graph)
    assert chosen(graph, small) == ["int8.conv2d", "int8.conv2d", "int8.dense"]
    assert block_pixels(small, 8) == 0 <= block_pixels(board, 8)
    for hardware in (small, core("cortex-m0plus")):
        with pytest.raises(ThimbleError, match=r"conv0: this board has no kernel cortex_m\.conv2d"):
            named("cortex_m.conv2d", form, hardware)
        assert named("int8.conv2d", form, hardware).accepts(form)


def test_without_scratch_it_is_the_portable_one() -> None:
    form = of(lambda net: net.conv(8), 8, 8, 8)
    assert [kernel.name for kernel in offers(form, core())] == ["cortex_m.conv2d", "int8.conv2d"]
    assert choose(form, core()).scratch_bytes(form) == 4 * 72 * 2
    assert choose(form, core(), scratch=False) == offers(form, core())[1]
    assert block_pixels(core(), 8) > 0
    pooled = of(lambda net: net.maximum((2, 2)), 8, 8, 8)  # not by what reaches 16 KiB alone
    assert "int4.window" not in [each.name for each in offers(pooled, core())]


def test_rings_of_rows_are_followed() -> None:
    assert choose(ring(1, 4), core()).name == "int8.conv2d"
    assert choose(ring(0, 4), core()).name == "cortex_m.conv2d"
    assert choose(of(scaled, over="image"), host()).name == "int8.multiply"


def test_windows_of_four_bits() -> None:
    """Wider elements take less time as bytes, on an AVR, too."""
    form = shifted()
    assert choose(form, uno()).name == choose(form, host()).name == "int4.window"
    wide = of(lambda net: net.conv(8, requant=PowerOfTwo(right_shift=7)), 6, 6, 4)
    assert choose(wide, uno()).name == choose(wide, host()).name == "int8.conv2d"
    window = named("int4.window", form, host())
    weights = replace(form, graph=typed(form.graph, "conv0.weight", "int16"))
    assert "int4 and int8 weights, not int16" in window.why_not(weights)
    source = replace(form, graph=typed(form.graph, "image", "int16"))
    assert "reads 4 and 8-bit activations, not int16" in window.why_not(source)
    assert window.why_not(of(Net.lookup)) == "no code for Lookup; have Conv2d, Dense, Pool2d"


def test_sums_of_four_bits_are_of_whole_pixels() -> None:
    graph = built(lambda net: net.plus("image", net.conv(2, (1, 1), requant=PowerOfTwo())), 4, 3, 2)
    for name in ("image", *(op.output for op in graph.operators)):
        graph = typed(graph, name, "int4")
    form, able = form_of(graph), named("int4.sum", form_of(graph), host()).accepts
    for extents in ((4, 3, 2), (1, 3, 2), (2, 2, 2), (2, 3, 1)):
        part = form
        for name in form.parts:
            part = cut(part, name, extents)
        assert able(part) == (extents[2] == 2)


def test_tables_whose_sums_leave_int32_are_refused() -> None:
    for ratio in (150, 200):  # of the inputs' scale to the output's, about
        form = form_of(built(total), requant=FixedPoint.of([ratio / (1 << 20)]))
        assert LookedUpAdd().accepts(form) == (ratio == 150)


def tile(columns: tuple[int, int], **changes: object) -> tuple[Compute, dict[str, Buffer], Net]:
    """A step that makes rows 0 to 4 and some columns of a 3x3 convolution of 8 x 8 pixels."""
    net = Net((8, 8, 2), np.random.default_rng(0), name="net")
    made = net.conv(3, (3, 3), padding=(1, 1, 1, 1), stride=(1, 1), **changes)
    low, stop = max(0, columns[0] - 1), min(8, columns[1] + 1)
    buffers = {
        "image": Buffer("image", "image", "sram", (8, 8, 2), 8, packed((8, 8, 2), 8)),
        "out": Buffer("out", made, "sram", (8, 8, 3), 8, packed((8, 8, 3), 8, 1024)),
    }
    out = Slice("out", (0, columns[0], 0), (4, columns[1] - columns[0], 3))
    given = Slice("image", (0, low, 0), (5, stop - low, 2))
    op = net.graph().operators[0]
    return Compute(op.name, out, (given,)), buffers, net


@pytest.mark.parametrize(
    ("columns", "left", "right"), [((0, 3), 1, 0), ((3, 6), 0, 0), ((5, 8), 0, 1)]
)
def test_what_lies_beyond_the_image_is_padding(
    columns: tuple[int, int], left: int, right: int
) -> None:
    step, buffers, net = tile(columns)
    own = own_image(step, buffers, net.graph())
    assert own is not None
    (op,) = own.graph.operators
    assert getattr(op, "padding") == (1, 0, left, right)  # noqa: B009
    made = own.buffers[own.step.out.buffer]
    assert made.shape == (4, columns[1] - columns[0], 3)
    whole = buffers["out"].addresses(((0, 4), columns, (0, 3)))
    equal(made.addresses(made.box), whole)


ROWS = Rows((640, 0, 160, 320, 480, 800, 960, 1120), (4, 2))


@pytest.mark.parametrize("place", [ROWS, Affine(0, (28, 4, 2), (0, 7, 0))])
def test_rows_that_lie_anywhere_do_so_in_the_tile(place: Rows | Affine) -> None:
    """And so do columns of a ring that do not go around it."""
    step, buffers, net = tile((3, 6))
    buffers["image"] = Buffer("image", "image", "sram", (8, 8, 2), 8, place)
    own = own_image(step, buffers, net.graph())
    assert own is not None
    given = own.buffers[own.step.ins[0].buffer]
    assert given.shape == (5, 5, 2) and isinstance(given.map, type(place))
    part = buffers["image"].addresses(((0, 5), (2, 7), (0, 2)))
    equal(given.addresses(given.box), part)


def test_all_columns_and_what_turns_in_a_ring_are_no_image() -> None:
    step, buffers, net = tile((0, 8))
    assert own_image(step, buffers, net.graph()) is None
    step, buffers, net = tile((3, 6))
    ring = Affine(0, (24, 4, 2), (0, 6, 0))
    buffers["image"] = Buffer("image", "image", "sram", (8, 8, 2), 8, ring)
    assert own_image(step, buffers, net.graph()) is None
