"""Plans that are right, or look right, but that generated code would get wrong: one clear line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.plan.vocabulary import Affine, Buffer, Move, Plan, Track, packed, whole
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.support import uno
from tests.strategies.chains import Chain
from tests.tiers import quick


def _pooled() -> Chain:
    return Chain((4, 6, 1), "uint8").average("p").dense("d", 2)


def _stored() -> Chain:
    return Chain((4, 6, 2)).conv("a", 3).dense("d", 2)


def _plan(chain: Chain) -> Plan:
    return Ordinary("slots").plan(chain.graph(), uno())


def _with(plan: Plan, *buffers: Buffer) -> Plan:
    """The plan with these buffers in place of those of the same name, or beside them."""
    changed = {buffer.name: buffer for buffer in buffers}
    return replace(plan, buffers=tuple({**plan.buffer, **changed}.values()))


def _refused(chain: Chain, plan: Plan, message: str) -> None:
    with pytest.raises(ThimbleError, match=message) as caught:
        generate(chain.graph(), plan, uno(), {})
    assert "\n" not in str(caught.value)


def _image(plan: Plan) -> Buffer:
    return next(plan.buffer[name] for name in plan.resident if "image" in name)


@pytest.mark.parametrize("chain", [_pooled(), _stored()], ids=["pooled", "stored"])
def test_a_stream_in_another_order(chain: Chain) -> None:
    """Column by column, or with a gap before it: nn_feed would read something else."""
    plan = _plan(chain)
    image = _image(plan)
    _, width, deep = packed(image.shape, image.bits).strides
    columns = replace(image, map=Affine(0, (width, width * image.shape[0], deep)))
    _refused(chain, _with(plan, columns), "takes image row by row as it arrives")
    late = replace(image, map=packed(image.shape, image.bits, 2))
    _refused(chain, _with(plan, late), "takes image row by row as it arrives")


@pytest.mark.parametrize(
    ("height", "width", "kernel"), quick(0, [(65_536, 2, (16, 2)), (2, 65_536, (2, 16))], ci=1)
)
def test_a_stream_beyond_its_counters(height: int, width: int, kernel: tuple[int, int]) -> None:
    """At the limit it is right, see test_native."""
    chain = Chain((height, width, 1), "uint8").average("p", 5, kernel=kernel, stride=kernel)
    chain.dense("d", 2)
    _refused(chain, _plan(chain), f"p: .* to 65,535; it has {height:,} rows of {width:,}")


def test_an_input_in_two_places_or_none() -> None:
    chain = _stored()
    plan = _plan(chain)
    again = replace(_image(plan), name="again", memory="sram", map=packed((4, 6, 2), 4))
    twice = replace(_with(plan, again), resident=(*plan.resident, "again"))
    _refused(chain, twice, "the input image arrives in two buffers")
    kept = Ordinary("slots").plan(chain.graph(), uno(streams=False))
    never = tuple(name for name in kept.resident if name != "image")
    _refused(chain, replace(kept, resident=never), "into one place, the plan has none")


def test_activations_outside_the_arena() -> None:
    chain = _stored()
    plan = _plan(chain)
    for memory in ("flash", "stream"):
        away = replace(plan.buffer["a"], memory=memory)
        _refused(chain, _with(plan, away), "generated code has one arena in RAM, the plan uses")


def test_reading_the_stream_again() -> None:
    chain = _stored()
    plan = _plan(chain)
    (track,) = plan.tracks
    conv = next(s for s in track.steps if getattr(s, "op", "") == "a")
    again = replace(conv, ins=(whole(_image(plan)), *conv.ins[1:]))  # type: ignore[call-arg, union-attr]
    steps = tuple(again if step is conv else step for step in track.steps)
    changed = replace(plan, tracks=(Track("cpu", steps),))
    _refused(chain, changed, "a: generated code computes from SRAM, not image.stream")


def test_constants_in_the_arena() -> None:
    """Generated code keeps constants apart: the arena would be larger than the plan says."""
    chain = _stored()
    plan = _plan(chain)
    weights = plan.buffer["a.weight"]
    inside = replace(weights, map=packed(weights.shape, weights.bits, 0))
    _refused(chain, _with(plan, inside), "a.weight: generated code keeps constants above the arena")
    streamed = replace(weights, memory="stream")
    _refused(chain, _with(plan, streamed), "a.weight is in stream, which brings the input alone")


def test_constants_in_two_places() -> None:
    chain = _stored()
    plan = _plan(chain)
    bias = plan.buffer["a.bias"]
    split = _with(plan, replace(bias, memory="flash", map=packed(bias.shape, bias.bits)))
    _refused(chain, split, "a: generated code reads an operator's constants from one place")
    copy = replace(bias, name="copy", map=packed(bias.shape, bias.bits, 9000))
    _refused(chain, _with(plan, copy), "a.bias in sram.*copy in sram")


def test_moving_constants() -> None:
    chain = _stored()
    plan = _plan(chain)
    bias = plan.buffer["a.bias"]
    (track,) = plan.tracks
    steps = (*track.steps, Move(whole(bias), whole(bias)))
    changed = replace(plan, tracks=(Track("cpu", steps),))
    _refused(chain, changed, "does not move constants such as a.bias")


@pytest.mark.parametrize("dtype", ["uint4", "int4"])
def test_outputs_of_half_a_byte(dtype: str) -> None:
    chain = Chain((4, 6, 2)).conv("a", 3, dtype=dtype)
    _refused(
        chain, _plan(chain), f"the output a is {dtype}, but generated code returns whole bytes"
    )


def test_sums_of_half_a_byte() -> None:
    chain = Chain((4, 6, 1), "int4").maximum("p").dense("d", 2)
    plan = _plan(chain)
    sums = plan.buffer["p.sums"]
    narrow = replace(sums, bits=4, map=Affine(sums.map.base, (0, 1, 1), (1, 0, 0)))  # type: ignore[union-attr]
    _refused(chain, _with(plan, narrow), "p.sums: generated code keeps sums in bytes, not 4 bits")
