"""Code that is generated, always the same, and plans that are refused."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Memory
from pipeline.plan import vocabulary as v
from pipeline.strategies.in_place import Herringbone
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.int8.support import Hand, Native, agrees, apart, at, host, net, network
from tests.codegen.support import write
from tests.graphs import Chained, Net
from tests.programs import ran
from tests.strategies.chains import board, mnist


def test_what_a_step_computes_chooses_the_kernels() -> None:
    graph = network()
    plan = Ordinary().plan(graph, host())
    bytewise = generate(graph, plan, host(), {})
    assert "nn_int8.h" in bytewise and "nn_cells.h" not in bytewise
    chain = mnist().graph()
    for hardware in (replace(board(), core="avr"), board(False)):
        files = generate(chain, Herringbone("slots").plan(chain, hardware), hardware, {})
        assert "nn_cells.h" in files and "nn_int8.h" not in files
    with pytest.raises(ThimbleError, match=r"no code generator for core z80 \(test\); have avr"):
        generate(graph, plan, replace(host(), core="z80"), {})


def test_a_board_that_is_too_small_is_said_by_the_compiler(tmp_path: Path) -> None:
    graph = network()
    plan = Ordinary().plan(graph, host())
    write(tmp_path, generate(graph, plan, host(255), {}))
    done = ran(["cc", "-std=gnu99", "-c", "model.c"], tmp_path)
    assert done.returncode and "the arena does not fit the RAM" in done.stderr


def test_an_input_that_is_asked_to_stay_does(tmp_path: Path) -> None:
    """The program compares it after each frame."""
    graph = network()
    native = Native(tmp_path, graph, Ordinary(preserve_input=True).plan(graph, host()))
    assert "#define NN_INPUT_KEPT 1" in native.files["model.h"]
    assert agrees(native)


def test_a_wrong_sign_is_said_with_its_layer_strategy_board_and_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, old = network(), "nn_scaled(sum + nn_conv4"

    def wrong(*args: Any) -> dict[str, str]:
        made = generate(*args)
        return made | {"model.c": made["model.c"].replace(old, old.replace("+", "-"))}

    for module in ("tests.codegen.support", "pipeline.targets.stepped"):
        monkeypatch.setattr(f"{module}.generate", wrong)
    with pytest.raises(AssertionError) as failed:
        agrees(Native(tmp_path, graph, Ordinary().plan(graph, host())))
    first, begins, about = str(failed.value).splitlines()
    assert re.fullmatch(r"\d+ of 18 elements differ, first at .*: expected -?\d+, got -?\d+", first)
    assert re.match(r"image 0: compute conv4 by nn_conv4 of model.c writes \d+ of \d+ ", begins)
    said = f"strategy ordinary, board host, C {tmp_path}/model.c"
    assert re.fullmatch(rf"layer softmax\d?, tensor {graph.output}, {said}", about)


Case = tuple[Graph, v.Plan]


def small() -> Case:
    n = net(5, 5, 3)
    graph = Chained(n).conv(4).dense(3).graph()
    return graph, apart(graph)


def changed(plan: v.Plan, name: str, **fields: Any) -> v.Plan:
    old = plan.buffer[name]
    new = replace(old, **fields)
    return replace(plan, buffers=tuple(new if b is old else b for b in plan.buffers))


def stepped(plan: v.Plan, *steps: Any) -> v.Plan:
    return replace(plan, tracks=(v.Track("cpu", steps),))


def one(make: Callable[[Net], str], shape: tuple[int, ...], at_byte: int, **fields: Any) -> Case:
    """One operator's step, with ``fields``, whose output is at a byte of the arena."""
    n = net(*shape)
    name = make(n)
    hand = Hand(n.graph())
    x, y = hand.put("image", 0), hand.put(name, at_byte)
    part = fields.pop("part", None)
    out = v.Slice(y.buffer, *part) if part else y
    step = v.Compute(name, out, (x, *hand.parameters(name)), **fields)
    return hand.graph, hand.plan(v.Loop("t", 2, (step,)) if part and part[0][0] else step)


def pointwise(unit: tuple[int, ...], order: tuple[tuple[int, ...], ...] = (), **more: Any) -> Case:
    return one(lambda n: n.conv(4, (1, 1)), (4, 4, 4), 0, unit=unit, order=order, **more)


def ring() -> Case:
    n = net(4, 4, 6)
    name = n.conv(2, (1, 1))
    hand = Hand(n.graph())
    hand.put("image", 0)
    around = hand.put("image", 200, name="ring", wrap=(0, 0, 4))
    step = v.Compute(name, hand.put(name, 400), (around, *hand.parameters(name)))
    return hand.graph, hand.plan(step)


def constants_moved() -> Case:
    graph, plan = small()
    weights: Any = plan.buffer["conv0.weight"]
    copy = v.Buffer("copy", weights.name, "sram", weights.shape, 8, replace(weights.map, base=9000))
    more = replace(plan, buffers=(*plan.buffers, copy))
    return graph, stepped(more, v.Move(v.whole(weights), v.whole(copy)))


def large_sums() -> Case:
    n = Chained(Net((300, 300, 2), np.random.default_rng(0)))
    graph = n.conv(2, (250, 250), padding=(0, 0, 0, 0)).graph()
    graph.constants["conv0.weight"][...] = 127
    return graph, apart(graph)


def in_flight() -> Case:
    graph, plan = small()
    for name in ("image", "dense1"):
        plan = changed(plan, name, copies=2, copy_stride=1 << 12)
    return graph, replace(plan, frames=2)


def with_plan(change: Callable[[v.Plan], v.Plan]) -> Callable[[], Case]:
    return lambda: (small()[0], change(small()[1]))


HALVES = tuple((i, j, k) for i in range(4) for j in range(4) for k in (2, 0))
TURNED = tuple((i, j, 0) for i in (2, 1, 0) for j in range(4))
TILE = ((at("t", 3), 0, 0), (3, 4, 4))
REFUSED: list[tuple[str, Callable[[], Case]]] = [
    ("the plan is for other, the graph is net", with_plan(lambda p: replace(p, graph="other"))),
    ("one track that computes",
     with_plan(lambda p: replace(p, tracks=(*p.tracks, replace(p.tracks[0], name="io"))))),
    ("off a byte", with_plan(lambda p: changed(p, "conv0", map=v.Table((*range(0, 198, 2), 199))))),
    ("off a byte", with_plan(lambda p: changed(p, "conv0", map=v.Affine(3, (40, 8, 2))))),
    ("takes image into one place", with_plan(lambda p: replace(p, resident=p.resident[1:]))),
    ("one arena in RAM.*dtcm, sram", with_plan(
        lambda p: changed(replace(p, memories=(*p.memories, Memory("dtcm", 512))), "conv0",
                          memory="dtcm"))),
    ("overwrites its input pixel by pixel", lambda: pointwise((2, 4, 4))),
    ("an order of pixels, all channels of each", lambda: pointwise((1, 1, 2), HALVES)),
    ("an order of pixels that are all there", lambda: pointwise((1, 1, 4), TURNED, part=TILE)),
    ("in place or apart", lambda: one(Net.lookup, (4, 4, 2), 3, unit=(4, 4, 2))),
    ("pads apart",
     lambda: one(lambda n: n.pad(((1, 1), (0, 0), (0, 0))), (4, 4, 2), 8, unit=(6, 4, 2))),
    ("lookup0: no code for partial sums of Lookup",
     lambda: one(Net.lookup, (4, 4, 2), 100, partial=True)),
    ("conv0: .* cannot follow the ring of image along axis 2", ring),
    ("does not move constants", constants_moved),
    ("conv0: its sums reach .* beyond 32 bits", large_sums),
    ("rows of a softmax whole", lambda: one(Net.softmax, (4, 8), 100, part=((0, 0), (4, 4)))),
    ("one frame at a time without a card, not 2", in_flight),
]  # fmt: skip


@pytest.mark.parametrize(("message", "make"), REFUSED)
def test_refuses(message: str, make: Callable[[], Case]) -> None:
    graph, plan = make()
    with pytest.raises(ThimbleError, match=message):
        generate(graph, plan, host(), {})


def test_an_input_in_pieces_is_fed(tmp_path: Path) -> None:
    graph, plan = small()
    scattered = changed(plan, "image", map=v.Affine(4000, (60, 8, 2)))
    native = Native(tmp_path, graph, scattered)
    assert "#define NN_INPUT_FILLABLE 0" in native.files["model.h"]
    assert "nn_input(" not in native.files["model.c"]
    assert agrees(native)


def test_large_tables_are_strings(tmp_path: Path) -> None:
    """Numbers would take the compiler minutes for the largest networks."""
    graph = Chained(Net((6, 6, 64), np.random.default_rng(0))).dense(40).graph()
    native = Native(tmp_path, graph, apart(graph), sanitize=False)
    assert agrees(native)
    assert '_weights[] =\n    "\\' in native.files["model.c"]
