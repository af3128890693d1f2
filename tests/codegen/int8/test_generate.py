"""What is generated, what is refused, and that it is always the same."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Memory
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import (
    Affine,
    Buffer,
    Clear,
    Compute,
    Loop,
    Move,
    Plan,
    Slice,
    Table,
    Track,
    whole,
)
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.int8.configurations import network
from tests.codegen.int8.plans import Hand, at, net
from tests.codegen.int8.support import Native, agrees, apart, host
from tests.graphs import Net
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


def test_orders_and_addresses_come_from_the_plan_alone() -> None:
    graph = network()
    plan = apart(graph)
    one = generate(graph, plan, host(), {})
    assert one == generate(graph, replace(plan, strategy="anything"), host(), {})
    assert one["model.c"] != generate(graph, Ordinary().plan(graph, host()), host(), {})[
        "model.c"
    ]  # fmt: skip


def test_header_states_memory_quantization_and_provenance() -> None:
    graph = network()
    plan = Ordinary().plan(graph, host())
    header = generate(graph, plan, host(), {"graph": graph.hash})["model.h"]
    image = graph.tensors["image"]
    assert graph.hash in header and "#error" in header
    assert "#define NN_INPUT_SHAPE 8, 8, 3\n" in header
    assert f"#define NN_INPUT_SCALE {image.scale[0]}\n" in header
    assert f"#define NN_INPUT_ZERO ({image.zero_point})\n" in header
    assert f"#define NN_MACS {graph.macs}\n" in header
    assert "typedef int8_t nn_output_t;" in header
    arena = int(re.search(r"NN_ARENA_BYTES (\d+)", header)[1])  # type: ignore[index]
    assert arena == 8 * 8 * 3 + 4 * 4 * 4


def test_an_arena_larger_than_the_board_does_not_compile(tmp_path: Path) -> None:
    graph = network()
    plan = Ordinary().plan(graph, host())
    for name, content in generate(graph, plan, host(255), {}).items():
        (tmp_path / name).write_text(content)
    command = ["cc", "-std=gnu99", "-c", "model.c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode and "the arena does not fit the RAM" in done.stderr


def test_the_input_is_said_to_be_kept_or_not() -> None:
    graph = network()
    kept = generate(graph, apart(graph), host(), {})["model.h"]
    assert "#define NN_INPUT_KEPT 1" in kept and "The input is kept" in kept
    plan = Ordinary().plan(graph, host())
    lost = generate(graph, plan, host(), {})["model.h"]
    assert "#define NN_INPUT_KEPT 0" in lost and "The input is not kept" in lost


def test_an_input_that_is_asked_to_stay_does(tmp_path: Path) -> None:
    """The program compares it after each frame."""
    graph = network()
    plan = Ordinary(preserve_input=True).plan(graph, host())
    native = Native(tmp_path, graph, plan)
    assert "#define NN_INPUT_KEPT 1" in native.files["model.h"]
    assert agrees(native)


def test_weights_are_in_flash_unless_the_board_says_otherwise() -> None:
    graph = network()
    hardware = replace(host(), weights_in="sram")
    inside = generate(graph, Ordinary().plan(graph, hardware), hardware, {})
    outside = generate(graph, Ordinary().plan(graph, host()), host(), {})
    pattern = re.compile(r"^static (const )?int8_t nn_\w+_weights\[", re.MULTILINE)
    assert set(pattern.findall(outside["model.c"])) == {"const "}
    assert set(pattern.findall(inside["model.c"])) == {""}
    assert "arena and weights do not fit" in inside["model.h"]


def test_depthwise_weights_are_laid_out_for_the_kernel() -> None:
    n = net(4, 4, 3)
    n.depthwise()
    graph = n.graph()
    text = generate(graph, apart(graph), host(), {})["model.c"]
    row = re.search(r"nn_conv0_weights\[27\] = {\n(.*?)}", text, re.DOTALL)
    assert row is not None
    found = [int(word) for word in re.findall(r"-?\d+", row[1])]
    expected = graph.constants["conv0.weight"].transpose(3, 1, 2, 0).reshape(-1)
    assert found == expected.tolist()


def refused(graph: Graph, plan: Plan, message: str) -> None:
    with pytest.raises(ThimbleError, match=message) as caught:
        generate(graph, plan, host(), {})
    assert "\n" not in str(caught.value)


def small() -> tuple[Graph, Plan]:
    n = net(5, 5, 3)
    n.conv(4)
    n.dense(3)
    graph = n.graph()
    return graph, apart(graph)


def changed(plan: Plan, name: str, **fields: Any) -> Plan:
    old = plan.buffer[name]
    new = replace(old, **fields)
    return replace(plan, buffers=tuple(new if b is old else b for b in plan.buffers))


def stepped(plan: Plan, *steps: Any) -> Plan:
    return replace(plan, tracks=(Track("cpu", steps),))


def test_refuses_another_networks_plan_and_two_tracks() -> None:
    graph, plan = small()
    refused(graph, replace(plan, graph="other"), "the plan is for other, the graph is net")
    tracks = (*plan.tracks, replace(plan.tracks[0], name="io"))
    refused(graph, replace(plan, tracks=tracks), "one track that computes")


def test_refuses_nibbles() -> None:
    graph, plan = small()
    cells = (*range(0, 198, 2), 199)
    refused(graph, changed(plan, "conv0", map=Table(cells)), "off a byte")
    odd = Affine(3, (40, 8, 2))
    refused(graph, changed(plan, "conv0", map=odd), "off a byte")


def test_an_input_in_pieces_is_fed(tmp_path: Path) -> None:
    graph, plan = small()
    torn = changed(plan, "image", map=Affine(4000, (60, 8, 2)))
    files = generate(graph, torn, host(), {})
    assert "#define NN_INPUT_FILLABLE 0" in files["model.h"] and "nn_input(" not in files["model.c"]
    assert agrees(Native(tmp_path, graph, torn))
    refused(graph, replace(plan, resident=plan.resident[1:]), "takes image into one place")


def test_refuses_memories_it_cannot_use() -> None:
    graph, plan = small()
    more = replace(plan, memories=(*plan.memories, Memory("dtcm", 512)))
    refused(graph, changed(more, "conv0", memory="dtcm"), "one arena in RAM.*dtcm, sram")


def test_refuses_units_other_than_pixels_over_its_input() -> None:
    n = net(4, 4, 4)
    name = n.conv(4, (1, 1))
    hand = Hand(n.graph())
    x, y = hand.put("image", 0), hand.put(name, 0)
    step = Compute(name, y, (x, *hand.parameters(name)), unit=(2, 4, 4))
    refused(hand.graph, hand.plan(step), "overwrites its input pixel by pixel")
    halves = tuple((i, j, k) for i in range(4) for j in range(4) for k in (2, 0))
    half = replace(step, unit=(1, 1, 2), order=halves)
    refused(hand.graph, hand.plan(half), "an order of pixels, all channels of each")
    part = Slice(y.buffer, (at("t", 3), 0, 0), (3, 4, 4))
    turned = tuple((i, j, 0) for i in (2, 1, 0) for j in range(4))
    cut = Compute(name, part, (x, *hand.parameters(name)), unit=(1, 1, 4), order=turned)
    refused(hand.graph, hand.plan(Loop("t", 2, (cut,))), "an order of pixels that are all there")


def test_refuses_overlaps_that_copies_cannot_survive() -> None:
    n = net(4, 4, 2)
    name = n.lookup()
    hand = Hand(n.graph())
    x, y = hand.put("image", 0), hand.put(name, 3)
    refused(hand.graph, hand.plan(Compute(name, y, (x,), unit=(4, 4, 2))), "in place or apart")
    n = net(4, 4, 2)
    name = n.pad(((1, 1), (0, 0), (0, 0)))
    hand = Hand(n.graph())
    x, y = hand.put("image", 0), hand.put(name, 8)
    refused(hand.graph, hand.plan(Compute(name, y, (x,), unit=(6, 4, 2))), "pads apart")


def test_refuses_partial_sums_of_what_has_none() -> None:
    n = net(4, 4, 2)
    name = n.lookup()
    hand = Hand(n.graph())
    x, y = hand.put("image", 0), hand.put(name, 100)
    step = Compute(name, y, (x,), partial=True)
    refused(hand.graph, hand.plan(step), "lookup0: no code for partial sums of Lookup")


def test_refuses_rings_that_a_kernel_cannot_follow() -> None:
    n = net(4, 4, 6)
    name = n.conv(2, (1, 1))
    hand = Hand(n.graph())
    hand.put("image", 0)
    ring = hand.put("image", 200, name="ring", wrap=(0, 0, 4))
    y = hand.put(name, 400)
    step = Compute(name, y, (ring, *hand.parameters(name)))
    refused(hand.graph, hand.plan(step), "conv0: .* cannot follow the ring of image along axis 2")


def test_refuses_moves_of_constants() -> None:
    graph, plan = small()
    weights = plan.buffer["conv0.weight"]
    copy = Buffer("copy", "conv0.weight", "sram", weights.shape, 8, replace(weights.map, base=9000))  # type: ignore[type-var]
    more = replace(plan, buffers=(*plan.buffers, copy))
    refused(graph, stepped(more, Move(whole(weights), whole(copy))), "does not move constants")


def test_refuses_sums_beyond_32_bits() -> None:
    n = Net((300, 300, 2), np.random.default_rng(0))
    n.conv(2, (250, 250), padding=(0, 0, 0, 0))
    graph = n.graph()
    graph.constants["conv0.weight"][...] = 127
    refused(graph, apart(graph), "conv0: its sums reach .* beyond 32 bits")


def test_refuses_part_of_a_softmax_row() -> None:
    n = net(4, 8)
    name = n.softmax()
    hand = Hand(n.graph())
    x, y = hand.put("image", 0), hand.put(name, 100)
    half = Slice(y.buffer, (0, 0), (4, 4))
    refused(hand.graph, hand.plan(Compute(name, half, (x,))), "rows of a softmax whole")


def test_clear_without_anything_to_add_is_still_code() -> None:
    n = net(3, 3, 2)
    name = n.conv(2)
    hand = Hand(n.graph())
    hand.put("image", 0)
    acc = hand.put(name, 100, name="acc", bits=32)
    hand.put(name, 300)
    source = generate(hand.graph, hand.plan(Clear(name, acc)), host(), {})["model.c"]
    assert "nothing added yet" in source and "nn_store_32" in source


def test_large_tables_are_strings(tmp_path: Path) -> None:
    """Numbers would take the compiler minutes for the largest networks."""
    n = Net((6, 6, 64), np.random.default_rng(0))
    n.dense(40)
    graph = n.graph()
    native = Native(tmp_path, graph, apart(graph), sanitize=False)
    assert agrees(native)
    assert '_weights[] =\n    "\\' in native.files["model.c"]


def test_refuses_frames_in_flight() -> None:
    graph, plan = small()
    both = changed(plan, "image", copies=2, copy_stride=1 << 12)
    both = changed(both, "dense1", copies=2, copy_stride=1 << 12)
    refused(graph, replace(both, frames=2), "one frame at a time, not 2")


def test_a_loop_that_chooses_a_copy_stays_one() -> None:
    graph, plan = small()
    several = changed(plan, "conv0", copies=2, copy_stride=1 << 12)
    step, *rest = several.tracks[0].steps
    turning = replace(step, out=replace(step.out, copy=at("n", 1)))
    text = generate(graph, stepped(several, Loop("n", 2, (turning,)), *rest), host(), {})["model.c"]
    base = plan.buffer["conv0"].map.base // 2  # type: ignore[union-attr]
    assert f"(int8_t *)&nn_arena[2048 * n + {base}])" in text


def test_a_slice_lies_in_the_copy_that_it_names(tmp_path: Path) -> None:
    graph, plan = small()
    stride = 1 << 12
    several = changed(plan, "conv0", copies=3, copy_stride=stride)
    first, second = several.tracks[0].steps
    written = replace(first, out=replace(first.out, copy=4))
    read = replace(second, ins=(replace(second.ins[0], copy=1), *second.ins[1:]))
    moved = stepped(several, written, read)
    verify(moved, graph)
    native = Native(tmp_path, graph, moved)
    assert agrees(native)
    base = plan.buffer["conv0"].map.base  # type: ignore[union-attr]
    assert f"nn_arena[{(base + stride) // 2}]" in native.files["model.c"]
