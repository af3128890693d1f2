"""What is generated, what is refused, and that it is always the same."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.plan.vocabulary import Clear, Compute, Plan, Slice, Track, packed, whole
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.support import uno
from tests.strategies.chains import Chain, mnist


def test_generated_twice_is_the_same_bytes() -> None:
    graph = mnist().graph()
    plan = Herringbone("slots").plan(graph, uno())
    assert generate(graph, plan, uno(), {"a": "1"}) == generate(graph, plan, uno(), {"a": "1"})


def test_orders_and_addresses_come_from_the_plan_alone() -> None:
    """The strategy's name has no influence."""
    graph = mnist().graph()
    plan = Herringbone("slots").plan(graph, uno())
    renamed = replace(plan, strategy="anything")
    assert generate(graph, plan, uno(), {}) == generate(graph, renamed, uno(), {})
    other = Ordinary("slots").plan(graph, uno())
    assert generate(graph, plan, uno(), {}) != generate(graph, other, uno(), {})


def test_header_states_memory_and_provenance() -> None:
    graph = mnist().graph()
    plan = Herringbone("slots").plan(graph, uno())
    header = generate(graph, plan, uno(), {"graph": graph.hash})["model.h"]
    assert graph.hash in header and "#error" in header
    assert "#define NN_WEIGHT_BYTES 1513" in header
    arena = int(re.search(r"NN_ARENA_BYTES (\d+)", header)[1])  # type: ignore[index]
    assert arena <= 435
    assert "int16_t nn_output_t" in header


@pytest.mark.ci
def test_all_constant_tables_are_in_flash() -> None:
    """On AVR a const array without PROGMEM would take RAM."""
    graph = mnist().graph()
    for strategy in (Herringbone("slots"), Herringbone("contiguous")):
        for weights_in in ("sram", "flash"):
            hardware = uno(weights_in)
            source = generate(graph, strategy.plan(graph, hardware), hardware, {})["model.c"]
            tables = re.findall(r"^static const .*\[.*\].*=", source, re.MULTILINE)
            assert tables and all("NN_FLASH" in line for line in tables)
            kept = len(re.findall(r"^static uint8_t nn_weights_", source, re.MULTILINE))
            assert kept == (4 if weights_in == "sram" else 0)


def _plan(chain: Chain, weights_in: str = "sram") -> Plan:
    return Ordinary("slots").plan(chain.graph(), uno(weights_in))


def _refused(chain: Chain, plan: Plan, message: str, **changes: object) -> None:
    with pytest.raises(ThimbleError, match=message) as caught:
        generate(chain.graph(), plan, replace(uno(), **changes), {})  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def _small() -> Chain:
    return Chain((6, 6, 2)).conv("a", 4).dense("d", 3)


def test_refuses_cores_it_does_not_know() -> None:
    chain = _small()
    _refused(chain, _plan(chain), "no code generator for core cortex-m4", core="cortex-m4")


def test_refuses_another_networks_plan() -> None:
    chain = _small()
    _refused(chain, replace(_plan(chain), graph="other"), "the plan is for other")


def test_refuses_groups_and_too_large_arenas() -> None:
    for channels, groups in ((4, 2), (8, 4)):
        grouped = Chain((6, 6, 4)).conv("a", channels, groups=groups).dense("d", 2)
        _refused(grouped, _plan(grouped), "a: generated code has no grouped convolution")
    large = Chain((200, 200, 1)).conv("a", 4).dense("d", 2)
    _refused(large, _plan(large), "an arena of 16 KiB")


def test_refuses_steps_it_cannot_express() -> None:
    chain = _small()
    plan = _plan(chain)
    (track,) = plan.tracks
    conv = next(step for step in track.steps if isinstance(step, Compute) and step.op == "a")

    def with_steps(*steps: object) -> Plan:
        at = track.steps.index(conv)
        changed = (*track.steps[:at], *steps, *track.steps[at + 1 :])
        return replace(plan, tracks=(Track("cpu", changed),))  # type: ignore[arg-type]

    half = replace(conv, out=replace(conv.out, size=(*conv.out.size[:2], 2)))
    _refused(chain, with_steps(half), "a: .*generated code computes all channels")
    blind = replace(conv, ins=conv.ins[:1])
    _refused(chain, with_steps(blind), "a: the plan's step does not read a.weight")
    opened = Clear("a", whole(plan.buffer["a"]))
    _refused(chain, with_steps(opened, conv), "a: generated code adds up in whole bytes")


def test_refuses_units_larger_than_a_pixel_only_in_place() -> None:
    chain = _small()
    plan = _plan(chain)
    (track,) = plan.tracks
    conv = next(step for step in track.steps if isinstance(step, Compute) and step.op == "a")
    rows = replace(conv, unit=(1, 4, 4), order=())
    apart = replace(
        plan, tracks=(Track("cpu", tuple(rows if s is conv else s for s in track.steps)),)
    )
    assert generate(chain.graph(), apart, uno(), {})["model.c"]
    over = replace(plan.buffer["a"], map=packed(plan.buffer["a"].shape, 4))
    image = replace(plan.buffer["image"], map=packed(plan.buffer["image"].shape, 4))
    names = {"a": over, "image": image}
    buffers = tuple(names.get(buffer.name, buffer) for buffer in plan.buffers)
    _refused(chain, replace(apart, buffers=buffers), "blocks whole before it writes over them")


def test_refuses_an_image_taken_in_another_order() -> None:
    chain = Chain((4, 4, 1), "uint8").average("p").dense("d", 2)
    plan = _plan(chain)
    (track,) = plan.tracks
    loop = track.steps[0]
    clear, *rest = loop.body  # type: ignore[union-attr]
    shifted = replace(clear, acc=Slice(clear.acc.buffer, (0, 0, 0), (2, 2, 1)))
    body = replace(loop, body=(shifted, *rest))  # type: ignore[call-arg]
    changed = replace(plan, tracks=(Track("cpu", (body, *track.steps[1:])),))
    _refused(chain, changed, "pools row after row")
