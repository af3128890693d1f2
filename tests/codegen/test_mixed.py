"""Layers of 4 and of 8 bits in one network, and 8-bit ones on an AVR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.graph.graph import Graph
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.requant import FixedPoint
from pipeline.hardware import Hardware
from pipeline.models.small_cnn import SmallCnn
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Affine, Table
from pipeline.quantize.int4 import Int4
from pipeline.strategies.base import Strategy
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets import protocol, simavr
from pipeline.targets.protocol import Command
from pipeline.targets.simavr import Chip
from pipeline.targets.toolchain import Size
from pipeline.training.environment import Run
from pipeline.training.random_weights import RandomWeights
from tests.codegen.support import Native, agrees, frames
from tests.codegen.test_everywhere import rows_as_they_come
from tests.graphs import Net
from tests.strategies.chains import Chain, board
from tests.targets.conftest import load_hardware, needs_avr
from tests.targets.cortex_m import built
from tests.tiers import quick


def mixed(name: str = "c") -> Graph:
    """Nibbles requantized by shifts, then bytes by multipliers of each channel, then by shifts."""
    chain = Chain((9, 8, 2)).conv("a", 5).conv("b", 4, dtype="int8")
    weight = chain.constant("c.weight", (6, 3, 3, 4), "int8")
    bias = chain.constant("c.bias", (6,), "int32")
    chain.constants["c.bias"] //= 1 << 20
    requant = FixedPoint.of([0.002 + 0.0005 * n for n in range(6)])
    chain.add(Conv2d(name, ("b",), name, (weight, bias), requant=requant), "int8")
    return chain.maximum("m").dense("d", 3, "int32").graph()


@pytest.mark.parametrize(
    ("kind", "core"),
    quick(1, [(Herringbone, "avr"), (Ordinary, "cortex_m"), (Herringbone, "host")]),
)
def test_layers_of_both_kinds(
    kind: type[Ordinary | Herringbone], core: str, tmp_path: Path
) -> None:
    graph = mixed()
    hardware = replace(board(core == "avr", "flash"), core=core, cpu="cortex-m4")
    plan = kind("slots").plan(graph, hardware)
    files = generate(graph, plan, hardware, {})
    assert {"nn_cells.h", "nn_int8.h"} <= set(files)
    assert agrees(Native(tmp_path, graph, plan, hardware), chunk=7)


@pytest.mark.parametrize("name", ["weights_a", "bias a"])
def test_names_that_the_other_kind_gives(name: str, tmp_path: Path) -> None:
    """An operator called so would have a function called as another's weights are."""
    graph, hardware = mixed(name), board(False, "flash")
    plan = Ordinary("slots").plan(graph, hardware)
    assert agrees(Native(tmp_path, graph, plan, hardware), 3)


def bytes_only() -> Graph:
    net = Net((8, 6, 2), np.random.default_rng(0))
    net.conv(4)
    net.depthwise()
    net.dense(3)
    return net.graph()


def answers(graph: Graph, folder: Path, size: Size, hardware: Hardware) -> bool:
    """The simulated chip, with what was built in ``folder``, as the graph."""
    given, output = frames(graph, 4), graph.tensors[graph.output]
    signed = graph.tensors[graph.input].dtype.signed
    images = given.astype(np.int8 if signed else np.uint8).view(np.uint8)
    runs = simavr.run(folder / "build", vars(size), hardware, images)
    values = runs.outputs.view(str(output.dtype)).astype(np.int64).reshape(-1, *output.shape)
    return bool((values == graph.outputs(given)).all())


@needs_avr
def test_rows_that_arrive_on_the_chip(tmp_path: Path, shim: Path) -> None:
    """The line waits: a row's outputs are computed between two of its bytes."""
    hardware = load_hardware(weights_in="flash")
    graph, plan = rows_as_they_come(4)
    size = built(tmp_path, graph, hardware, plan)
    with Chip(
        shim, tmp_path / "build" / "firmware.elf", hardware, size.sections, line="instant"
    ) as chip:
        for frame in frames(graph, 4):
            asked = protocol.encode(Command.INFER, frame.astype(np.int8).tobytes())
            (reply,) = protocol.replies(chip.exchange(asked).reply)
            assert reply.payload == graph.outputs(frame[None]).astype(np.int8).tobytes()


@needs_avr
@pytest.mark.parametrize(("make", "weights_in"), quick(1, [(mixed, "flash"), (bytes_only, "sram")]))
def test_bytes_on_the_chip(make: Callable[[], Graph], weights_in: str, tmp_path: Path) -> None:
    """The simulated chip answers as the graph does; its weights are where the plan has them."""
    graph, hardware = make(), load_hardware(weights_in=weights_in)
    plan = Ordinary("slots").plan(graph, hardware)
    size = built(tmp_path, graph, hardware, plan)
    assert size.status == "ok", size.where
    assert any("weights" in name for name in size.ram_objects) == (weights_in == "sram")
    assert answers(graph, tmp_path, size, hardware)


def trained() -> Graph:
    """As a training leaves ``model.bits=[4,8,4]``, the second convolution depthwise."""
    model = SmallCnn((12, 11, 1), 3, ((5, 3, 1), (0, 3, 1), (4, 2, 2)), (), 1, (4, 8, 4))
    weights = RandomWeights(images=4).train(model, {}, Run(1)).weights
    return Int4(images=8).graph("trained", model, weights, {})


@needs_avr
@pytest.mark.parametrize(
    ("graph", "strategy"),
    quick(
        0,
        [
            (trained, Herringbone("slots", convolve_arriving=True)),
            (mixed, Herringbone("slots", convolve_arriving=True)),
            (mixed, Joint()),
            (trained, Joint()),
            (trained, Ordinary("slots")),
        ],
        ci=3,
    ),
)
def test_bits_rows_that_arrive_and_slots_in_one_plan(
    graph: Callable[[], Graph], strategy: Strategy, tmp_path: Path
) -> None:
    """A slow line, because bytes are computed in C while it goes on."""
    hardware, made = load_hardware(weights_in="flash", baud=2400), graph()
    assert {made.tensors[op.output].dtype.bits for op in made.operators} >= {4, 8}
    plan = strategy.plan(made, hardware)
    verify(plan, made)
    if strategy.name == "herringbone":
        rings = [b for b in plan.buffers if isinstance(b.map, Affine) and any(b.map.wrap)]
        assert rings and any(isinstance(b.map, Table) for b in plan.buffers)
    size = built(tmp_path, made, hardware, plan)
    assert size.status == "ok", size.where
    assert answers(made, tmp_path, size, hardware)


@needs_avr
def test_a_mega_has_four_times_the_memory(tmp_path: Path) -> None:
    """Its return addresses have three bytes; more than an Uno has is in use."""
    net = Net((32, 28, 2), np.random.default_rng(0))
    net.conv(3)
    net.dense(3)
    graph, hardware = net.graph(), load_hardware("arduino_mega")
    plan = Ordinary("slots").plan(graph, hardware)
    size = built(tmp_path, graph, hardware, plan)
    assert size.status == "ok" and size.ram_objects["nn_arena"] > 4000
    assert answers(graph, tmp_path, size, hardware)
