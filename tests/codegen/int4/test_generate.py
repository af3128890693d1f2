"""Generated C of 4-bit chains, with counters, steps and sums at the ends of their C types; and
plans that are right, or look right, but that generated code would get wrong: one clear line."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.codegen import generate
from pipeline.codegen.constants import c_bits
from pipeline.errors import ThimbleError
from pipeline.graph.operators.pool2d import AveragePool2d
from pipeline.graph.requant import PowerOfTwo
from pipeline.plan import vocabulary as v
from pipeline.strategies.in_place import Herringbone
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.support import WARNINGS, Native, agrees, uno
from tests.programs import said
from tests.strategies.chains import Chain, mnist
from tests.tiers import quick


def pooled() -> Chain:
    return Chain((4, 6, 1), "uint8").average("p").dense("d", 2)


def stored() -> Chain:
    return Chain((4, 6, 2)).conv("a", 3).dense("d", 2)


Change = Callable[[v.Plan], v.Plan]


def with_buffers(plan: v.Plan, *buffers: v.Buffer) -> v.Plan:
    """The plan with these buffers in place of those of the same name, or beside them."""
    changed = {buffer.name: buffer for buffer in buffers}
    return replace(plan, buffers=tuple({**plan.buffer, **changed}.values()))


def put(name: str, /, **fields: Any) -> Change:
    """A buffer is another one, or one more beside it."""
    return lambda plan: with_buffers(plan, replace(plan.buffer[name], **fields))


def steps(make: Callable[[v.Compute, v.Plan], tuple[Any, ...]]) -> Change:
    """``a``'s step becomes others."""

    def change(plan: v.Plan) -> v.Plan:
        found = list[Any]()
        for step in plan.tracks[0].steps:
            found += make(step, plan) if getattr(step, "op", "") == "a" else (step,)  # type: ignore[arg-type]
        return replace(plan, tracks=(v.Track("cpu", tuple(found)),))

    return change


def image(plan: v.Plan) -> v.Buffer:
    return next(plan.buffer[name] for name in plan.resident if "image" in name)


def by_columns(plan: v.Plan) -> v.Plan:
    """nn_feed would read something else."""
    here = image(plan)
    _, width, deep = v.packed(here.shape, here.bits).strides
    columns = v.Affine(0, (width, width * here.shape[0], deep))
    return with_buffers(plan, replace(here, map=columns))


def late(plan: v.Plan) -> v.Plan:
    here = image(plan)
    return with_buffers(plan, replace(here, map=v.packed(here.shape, here.bits, 2)))


def twice(plan: v.Plan) -> v.Plan:
    again = replace(image(plan), name="again", memory="sram", map=v.packed((4, 6, 2), 4))
    return replace(with_buffers(plan, again), resident=(*plan.resident, "again"))


def never(plan: v.Plan) -> v.Plan:
    kept = Ordinary("slots").plan(stored().graph(), uno(streams=False))
    return replace(kept, resident=tuple(name for name in kept.resident if name != "image"))


def another_order(plan: v.Plan) -> v.Plan:
    loop: Any = plan.tracks[0].steps[0]
    clear, *rest = loop.body
    shifted = replace(clear, acc=v.Slice(clear.acc.buffer, (0, 0, 0), (2, 2, 1)))
    body = replace(loop, body=(shifted, *rest))
    return replace(plan, tracks=(v.Track("cpu", (body, *plan.tracks[0].steps[1:])),))


def large_units_in_place(plan: v.Plan) -> v.Plan:
    """Apart they are no matter."""
    rows = steps(lambda a, _: (replace(a, unit=(1, a.out.size[1], 3), order=()),))(plan)
    assert generate(stored().graph(), rows, uno(streams=False), {})["model.c"]
    over = (replace(plan.buffer[n], map=v.packed(plan.buffer[n].shape, 4)) for n in ("a", "image"))
    return with_buffers(rows, *over)


def narrow(plan: v.Plan) -> v.Plan:
    sums: Any = plan.buffer["p.sums"]
    return put("p.sums", bits=4, map=v.Affine(sums.map.base, (0, 1, 1), (1, 0, 0)))(plan)


def grouped(channels: int, groups: int) -> Chain:
    return Chain((6, 6, 4)).conv("a", channels, groups=groups).dense("d", 2)


BIAS, BY_ROW = v.packed((3,), 8), "takes image row by row as it arrives"
REFUSED: list[tuple[str, Chain, Change]] = [
    ("the plan is for other", stored(), lambda plan: replace(plan, graph="other")),
    *((BY_ROW, chain, each) for chain in (pooled(), stored()) for each in (by_columns, late)),
    ("the input image arrives in two buffers", stored(), twice),
    ("into one place, the plan has none", stored(), never),
    ("one arena in RAM, the plan uses", stored(), put("a", memory="flash")),
    ("one arena in RAM, the plan uses", stored(), put("a", memory="stream")),
    ("a: generated code computes from SRAM, not image.stream", stored(),
     steps(lambda a, plan: (replace(a, ins=(v.whole(image(plan)), *a.ins[1:])),))),
    # the arena would be larger than the plan says
    ("a.weight: generated code keeps constants above the arena", stored(),
     put("a.weight", map=v.packed((3, 3, 3, 2), 4, 0))),
    ("a.weight is in stream, which brings the input alone", stored(),
     put("a.weight", memory="stream")),
    ("a: generated code reads an operator's constants from one place", stored(),
     put("a.bias", memory="flash", map=BIAS)),
    ("a.bias in sram.*copy in sram", stored(),
     put("a.bias", name="copy", map=v.packed((3,), 8, 9000))),
    ("does not move constants such as a.bias", stored(),
     steps(lambda a, plan: (a, v.Move(*2 * [v.whole(plan.buffer["a.bias"])])))),
    *((f"the output a is {dtype}, but generated code returns whole bytes",
       Chain((4, 6, 2)).conv("a", 3, dtype=dtype), lambda plan: plan)
      for dtype in ("uint4", "int4")),
    ("p.sums: generated code keeps sums in bytes, not 4 bits",
     Chain((4, 6, 1), "int4").maximum("p").dense("d", 2), narrow),
    ("a: generated code has no grouped convolution", grouped(4, 2), lambda plan: plan),
    ("an arena of 16 KiB", Chain((200, 200, 1)).conv("a", 4).dense("d", 2), lambda plan: plan),
    ("a: .*generated code computes all channels", stored(),
     steps(lambda a, _: (replace(a, out=replace(a.out, size=(*a.out.size[:2], 2))),))),
    ("a: the plan's step does not read a.weight", stored(),
     steps(lambda a, _: (replace(a, ins=a.ins[:1]),))),
    ("a: generated code adds up in whole bytes", stored(),
     steps(lambda a, plan: (v.Clear("a", v.whole(plan.buffer["a"])), a))),
    ("blocks whole before it writes over them", stored(), large_units_in_place),
    ("pools row after row", Chain((4, 4, 1), "uint8").average("p").dense("d", 2), another_order),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refuses(number: int) -> None:
    message, chain, change = REFUSED[number]
    graph = chain.graph()
    with pytest.raises(ThimbleError, match=message):
        generate(graph, change(Ordinary("slots").plan(graph, uno())), uno(), {})


@pytest.mark.parametrize(
    ("height", "width", "kernel"), quick(0, [(65_536, 2, (16, 2)), (2, 65_536, (2, 16))], ci=1)
)
def test_refuses_a_stream_beyond_its_counters(
    height: int, width: int, kernel: tuple[int, int]
) -> None:
    """At the limit it is right, see test_native."""
    chain = Chain((height, width, 1), "uint8").average("p", 5, kernel=kernel, stride=kernel)
    graph = chain.dense("d", 2).graph()
    with pytest.raises(ThimbleError, match=f"p: .* to 65,535; it has {height:,} rows of {width:,}"):
        generate(graph, Ordinary("slots").plan(graph, uno()), uno(), {})


def for_avr(folder: Path, *flags: str) -> None:
    if shutil.which("avr-gcc") is not None:
        command = ["avr-gcc", "-mmcu=atmega328p", *WARNINGS, *flags, "-c", "model.c", "-o", "avr.o"]
        said(command, folder)


def test_the_narrowest_type() -> None:
    assert [c_bits(each) for each in ([], [255], [0, 256], [65535], [65536])] == [8, 8, 16, 16, 32]
    signed = [c_bits(each, signed=True) for each in ([-128, 127], [128], [-129], [-32768], [32768])]
    assert signed == [8, 16, 16, 16, 32]


def lines(rows: int) -> Chain:
    return Chain((rows, 4, 1)).conv("a", 1).dense("d", 2)


def dense(depth: int, outputs: int) -> Chain:
    """Build a layer on bytes, which assembly does not compute."""
    return Chain((3, 3, depth), "uint8").dense("d", outputs)


def shifted(left: int) -> Chain:
    """Four bytes add up to 1020; shifted by 6 they leave 16 bits."""
    requant = PowerOfTwo(left, left + 6, "floor")
    op = AveragePool2d("p", ("image",), "p", requant=requant)
    return Chain((4, 4, 1), "uint8").add(op, "uint4").dense("d", 3)


def moved(plan: v.Plan) -> v.Plan:
    """The output is copied in the end; constants are out of the way of that."""
    out = plan.buffer[plan.output]
    (outputs,), base = out.shape, int(out.addresses(out.box)[0])
    copy = replace(out, name="copy", map=v.Affine(base + 4 * outputs, (4,)))

    def above(buffer: v.Buffer) -> v.Buffer:
        assert isinstance(buffer.map, v.Affine)
        return replace(buffer, map=replace(buffer.map, base=buffer.map.base + 4000))

    buffers = (*(above(b) if b.role == "constant" else b for b in plan.buffers), copy)
    steps = (*plan.tracks[0].steps, v.Move(v.whole(out), v.whole(copy)))
    return replace(plan, buffers=buffers, tracks=(v.Track("cpu", steps),), outputs=("copy",))


def shuffled(plan: v.Plan) -> v.Plan:
    """A table of pixels, none of them scattered."""
    image = plan.buffer["image"]
    base = int(image.addresses(image.box).min())
    image = replace(image, map=v.Table(tuple(base + n for n in (6, 7, 0, 1, 4, 5, 2, 3))))
    return replace(plan, buffers=tuple(image if b.name == "image" else b for b in plan.buffers))


CASES: list[tuple[Chain, Callable[[v.Plan], v.Plan] | None, tuple[str, ...], str]] = [
    (lines(258), None, ("nn_a(&nn_lines[0], 256)", "_line_t *line, uint16_t lines"), "none"),
    (Chain((3, 255, 1)).conv("a", 1, padding=(1, 1, 1, 1)).dense("d", 2), None,
     ("    int8_t y_step, x_step;",), "none"),
    (dense(1, 64), moved, ("nn_permute_bytes_128(&nn_cycles[0], 0, 1, ",), "nn_take"),
    (dense(12, 256), None, ("static const uint8_t nn_d__channels[256]",), "none"),
    (dense(12, 257), None, ("static const uint16_t nn_d__channels[257]",), "none"),
    (shifted(4), None, ("int16_t value = *bytes;",), "none"),
    (shifted(6), None, ("int32_t value = *bytes;",), "none"),
    (Chain((2, 2, 2)).conv("a", 3, 1).dense("d", 2), shuffled, ("nn_pixels[position]",),
     "nn_scatter["),
    (lines(257), None, ("nn_a(&nn_lines[0], 255)", "_line_t *line, uint8_t lines"), "none"),
    (lines(300), None, ("nn_a(&nn_lines[0], 298)", "_line_t *line, uint16_t lines"), "none"),
]  # fmt: skip
"""A network, what becomes of its plan, what its C says, and what not."""


@pytest.mark.parametrize("number", quick(8, range(len(CASES))))
def test_types(number: int, tmp_path: Path) -> None:
    """The host's code agrees with the graph; avr-gcc takes it, with assembly or not, unwarned."""
    chain, change, says, never = CASES[number]
    graph = chain.graph()
    plan = (Herringbone("slots") if "lines" in says[-1] else Ordinary("slots")).plan(graph, uno())
    assert agrees(Native(tmp_path, graph, change(plan) if change else plan, uno()), 4)
    for twin in ((), ("-DNN_PORTABLE",)):
        for_avr(tmp_path, "-Os", *twin)
    code = (tmp_path / "model.c").read_text()
    assert all(word in code for word in says) and never not in code


@pytest.mark.parametrize(
    ("weights_in", "optimize"),
    quick(1, [("flash", "-O3"), ("sram", "-O1"), ("sram", "-O3"), ("flash", "-O2")], ci=1),
)
def test_labels_are_unique(weights_in: str, optimize: str, tmp_path: Path) -> None:
    """However often the compiler inlines a kernel: run 2 of copy 26 is not run 22 of copy 6."""
    graph = mnist().graph()
    hardware = uno(weights_in)
    Native(tmp_path, graph, Herringbone("slots").plan(graph, hardware), hardware, sanitize=False)
    for_avr(tmp_path, optimize)
