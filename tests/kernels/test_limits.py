"""Why portable and 4-bit code are not for a form, in the words that users read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.requant import FixedPoint, PowerOfTwo
from pipeline.graph.tensor import DType
from pipeline.hardware import Hardware
from pipeline.kernels import Form, Part, choose, named
from tests.codegen.cortex_m.support import core
from tests.codegen.int8.support import host
from tests.codegen.support import uno
from tests.graphs import Net


def net(*shape: int) -> Net:
    return Net(shape, np.random.default_rng(0), name="net")


def typed(graph: Graph, name: str, dtype: str, zero_point: int = 0) -> Graph:
    tensor = replace(graph.tensors[name], dtype=DType.parse(dtype), zero_point=zero_point)
    return replace(graph, tensors={**graph.tensors, name: tensor})


def why(form: Form, hardware: Hardware | None = None) -> str:
    """In the error where there is no kernel at all."""
    with pytest.raises(ThimbleError) as error:
        choose(form, hardware or host())
    assert "\n" not in str(error.value)
    return str(error.value)


def form_of(graph: Graph, overlaps: tuple[str, ...] = (), **op: object) -> Form:
    last = graph.operators[-1]
    changed = replace(last, **op) if op else last  # type: ignore[arg-type]
    return replace(Form.whole(last, graph, overlaps), op=changed)


def cut(form: Form, name: str, extents: tuple[int, ...], **changes: object) -> Form:
    part = replace(form.parts[name], extents=extents, **changes)  # type: ignore[arg-type]
    return replace(form, parts={**form.parts, name: part})


def convolved() -> Graph:
    one = net(6, 6, 4)
    one.conv(8)
    return one.graph()


def test_weights() -> None:
    graph = convolved()
    found = why(form_of(typed(graph, "conv0.weight", "int16")))
    assert "conv0: its weights are int16 with zero point 0" in found
    found = why(form_of(typed(graph, "conv0.weight", "int8", 3)))
    assert "zero point 3; code for this core takes int8 with zero point 0" in found
    assert "multiplies int16 elements" in why(form_of(typed(graph, "image", "int16")))


def test_rings_of_channels() -> None:
    form = form_of(convolved())
    around = cut(form, "image", (6, 6, 4), rings=(0, 0, 3), around=(False, False, True))
    assert "cannot follow the ring of image along axis 2" in why(around)
    rows = cut(form, "image", (6, 6, 4), rings=(4, 0, 0), around=(True, False, False))
    columns = cut(form, "image", (6, 6, 4), rings=(0, 4, 0), around=(False, True, False))
    assert choose(columns, core()).name == "int8.conv2d"
    assert choose(rows, core()).name == choose(form, core()).name == "cortex_m.conv2d"


def test_partial_sums() -> None:
    one = net(4, 4, 2)
    one.lookup()
    form = replace(form_of(one.graph()), partial=True)
    assert "no code for partial sums of Lookup" in why(form)
    one = net(4, 4, 2)
    one.mean((2, 2), padding=(1, 0, 1, 0))
    assert "padded averages in one step" in why(replace(form_of(one.graph()), partial=True))


def test_what_is_element_wise() -> None:
    one = Net((4, 4, 2), np.random.default_rng(0), "int16")
    one.lookup()
    assert "a table is for elements of 8 bits, not int16" in why(form_of(one.graph()))
    one = net(4, 4, 2)
    one.plus("image", one.lookup())
    graph = one.graph()
    several = FixedPoint.of([0.5, 0.25])
    assert "one multiplier, not several" in why(form_of(graph, requant=several))
    requants = FixedPoint.of([0.5]), several
    assert "lookup0 has several multipliers" in why(form_of(graph, operand_requants=requants))
    one = net(4, 4, 2)
    one.times("image", one.rescaled_mean())
    graph = one.graph()
    assert choose(form_of(graph, ("image",)), host()).name == "int8.multiply"
    assert "overwrites mean0, which is read again" in why(form_of(graph, ("mean0",)))


def test_what_moves_elements() -> None:
    one = net(4, 4, 2)
    one.pad(((1, 1), (1, 1), (0, 0)))
    assert "pads apart from its input" in why(form_of(one.graph(), ("image",)))
    one = net(4, 4, 2)
    one.rearrange((8, 4, 2), (1, 0, 2), repeats=(1, 2, 1))
    assert "repeats elements apart from its input" in why(form_of(one.graph(), ("image",)))
    one = net(4, 4, 2)
    one.reshape((32,))
    form = form_of(one.graph())
    assert "reshapes a tensor all at once" in why(cut(form, "reshape0", (16,)))


def test_softmax() -> None:
    one = net(4, 8)
    one.softmax()
    form = form_of(one.graph())
    assert "computes rows of a softmax whole" in why(cut(form, "softmax0", (4, 4)))
    one = net(1, 5000)
    one.softmax()
    assert "a softmax over 5000 values, 4095 are possible" in why(form_of(one.graph()))


def four_bits(op: type[Operator] | None = None, **changes: object) -> Form:
    one = net(6, 6, 4)
    one.conv(8, requant=PowerOfTwo(right_shift=7))
    graph = typed(typed(one.graph(), "conv0", "uint4"), "image", "uint4")
    return form_of(graph, **changes)


def test_four_bits() -> None:
    assert choose(four_bits(), uno()).name == "int4.window"
    assert choose(four_bits(), host()).name == "int4.window"
    found = why(four_bits(requant=FixedPoint.of([0.1])))
    assert "requantizes by shifts (quantize=int4), not by FixedPoint" in found
    assert "no grouped convolution but depthwise ones (groups=2)" in why(four_bits(groups=2))
    form = four_bits()
    assert "this plan splits them" in why(cut(form, "conv0", (6, 6, 2)))
    assert "this plan splits them" in why(replace(form, partial=True))
    window = named("int4.window", form, host())
    weights = replace(form, graph=typed(form.graph, "conv0.weight", "int16"))
    assert "int4 and int8 weights, not int16" in window.why_not(weights)
    source = replace(form, graph=typed(form.graph, "image", "int16"))
    assert "reads 4 and 8-bit activations, not int16" in window.why_not(source)
    one = net(4, 4, 2)
    one.lookup()
    assert window.why_not(form_of(one.graph())) == "no code for Lookup; have Conv2d, Dense, Pool2d"


def test_shifts_run_by_windows_where_those_have_assembly() -> None:
    one = net(6, 6, 4)
    one.conv(8, requant=PowerOfTwo(right_shift=7))
    form = form_of(one.graph())
    assert choose(form, uno()).name == "int4.window"
    assert choose(form, host()).name == "int8.conv2d"


def test_parts_are_what_slices_say() -> None:
    whole = Part.packed((4, 4, 2), 8)
    assert whole.strides == (16, 4, 2)
    assert (whole.rings, whole.around, whole.multiples) == ((0,) * 3, (False,) * 3, (True,) * 3)
