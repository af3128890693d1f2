"""What figures of a run are of: layers, functions, and images without zeros."""

from __future__ import annotations

import dataclasses
import json
import struct
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from pipeline import codegen
from pipeline.codegen.names import identifier
from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware
from pipeline.strategies.herringbone import Herringbone
from pipeline.targets import device, simavr, toolchain
from pipeline.targets.harness import harness_sources
from pipeline.targets.layers import REST, Layers, of_functions
from pipeline.targets.runs import Runs
from pipeline.targets.zeros import BYTE, IF_ZERO, TEST, UNLESS_ZERO, no_skips
from tests.codegen.support import write
from tests.comparing import equal
from tests.strategies.chains import Chain
from tests.targets.conftest import generate, load_hardware, model, needs_avr

pytestmark = pytest.mark.usefixtures("compiled_once", "no_host")

STEPS = {"feed": "pooled", "invoke": ["a", "moves", "a", "moves", "b"]}


def test_steps_add_up_by_layer_and_to_the_whole() -> None:
    layers = Layers.of(STEPS)
    assert layers.names == ("pooled", "a", "moves", "b", REST)
    assert layers.add_up(7, 200, (10, 1, 20, 2, 30)).tolist() == [7, 30, 3, 30, 137]


def test_a_layer_may_begin_while_the_input_arrives() -> None:
    layers = Layers.of({"feed": "a", "invoke": ["a", "b"]})
    assert layers.names == ("a", "b", REST)
    assert layers.add_up(7, 100, (10, 20)).tolist() == [17, 20, 70]


def test_other_steps_than_the_sources_said_are_one_line() -> None:
    with pytest.raises(ThimbleError, match=r"nn_invoke made 2 steps, size\.json knows 5: run"):
        Layers.of(STEPS).add_up(7, 100, (10, 20))
    assert Layers.of({}).add_up(7, 100, (10, 20)).shape == (0,)


def test_the_figures_are_of_the_median_image() -> None:
    cycles = np.array([50, 90, 70, 60])
    by_layer = np.stack([cycles - 20, np.full(4, 20)], axis=1)
    runs = Runs(np.zeros((4, 3)), cycles, cycles, ("a", REST), by_layer)
    assert device._by_layer(runs, ()) == [("a", 40), (REST, 20)]
    assert device._by_layer(Runs(np.zeros((4, 3)), cycles, cycles), ()) is None


WORK = """
#ifdef __AVR__
#define LOOP(n) __asm__ volatile("ldi r24, %0\\n1: dec r24\\nbrne 1b\\n" ::"M"(n) : "r24")
#else
#define LOOP(n)
#endif
__attribute__((noinline)) static void leaf(void) { LOOP(10); }
__attribute__((noinline)) static void one(void) { LOOP(100); }
__attribute__((noinline)) static void two(void) { leaf(); LOOP(200); leaf(); }
"""


@needs_avr
def test_the_chip_sees_each_call_of_nn_invoke(tmp_path: Path, arduino: Hardware) -> None:
    """A loop takes 3 cycles a turn; what a step calls is part of it; only a return is added."""
    source = model(WORK, invoke="one(); two(); one();")
    folder = generate(tmp_path / "g", arduino, source)
    steps = {"feed": "input", "invoke": ["x", "y", "x"]}
    (folder / "steps.json").write_text(json.dumps(steps))
    size = toolchain.build(folder, tmp_path, arduino)
    assert size.steps == steps and size.sections["nn_invoke"][1] > 0
    runs = simavr.run(tmp_path, asdict(size), arduino, np.zeros((2, 16), np.uint8))
    one, leaf = 3 * 100 + 4, 3 * 10 + 4
    assert runs.layers == ("input", "x", "y", REST)
    assert set(runs.layer_cycles[:, 1]) == {2 * one}
    assert 3 * 200 + 2 * leaf + 4 < runs.layer_cycles[0, 2] <= 3 * 200 + 2 * leaf + 4 + 2 * 4
    equal(runs.layer_cycles.sum(axis=1), runs.compute_cycles)


@needs_avr
def test_the_chip_counts_functions_where_it_is_not_told_steps(
    tmp_path: Path, arduino: Hardware
) -> None:
    """What a function calls counts with it only where it is the compiler's own."""
    folder = generate(tmp_path / "g", arduino, model(WORK, invoke="one(); two(); one();"))
    size = toolchain.build(folder, tmp_path, arduino)
    assert not size.steps and not any(name.startswith("__") for name in size.code)
    runs = simavr.run(tmp_path, asdict(size), arduino, np.zeros((2, 16), np.uint8))
    taken = dict(zip(runs.functions, runs.function_cycles[0].tolist(), strict=True))
    assert 0 < sum(taken.values()) <= runs.compute_cycles[0]
    assert 2 * 3 * 100 < taken["one"] < 2 * (3 * 100 + 20)
    assert 3 * 200 < taken["two"] < 3 * 200 + 20 and 2 * 3 * 10 < taken["leaf"] < 2 * (3 * 10 + 9)


def test_functions_are_the_layers_that_they_are_called_as() -> None:
    functions = {
        "nn_invoke": 5, "nn_conv1": 100, "nn_conv1_row": 20, "nn_conv10": 7, "memcpy": 3,
        "nn_a_b_0123456789ab": 1,
    }  # fmt: skip
    names = ["conv1", "conv10", "conv1_row", "unseen"]
    assert of_functions(functions, 140, names) == [
        ("conv1", 100), ("conv10", 7), ("conv1_row", 20), ("rest", 13),
    ]  # fmt: skip
    assert of_functions(functions, 140, ["conv1", "conv10"])[0] == ("conv1", 120)
    odd = f"run_{identifier('a b')}"
    mine = of_functions({"nn_invoke": 1, "nn_run_x": 9}, 10, ["run_x", "x"])
    assert mine == [("run_x", 9), ("rest", 1)]
    for function in ("my_a_b", "my_a_b_row", odd, f"my_{odd}"):
        found = of_functions({"my_invoke": 1, function: 9}, 10, ["a b"])
        assert found == [("a b", 9), ("rest", 1)], function
    assert of_functions({"nn_invoke": 10}, 10, ["conv1"]) == [] == of_functions({}, 10, ["a"])


@needs_avr
@pytest.mark.parametrize("weights_in", ["sram", "flash"])
def test_an_image_without_zeros_takes_what_is_announced(weights_in: str, tmp_path: Path) -> None:
    graph = Chain((5, 5, 3)).conv("a", 4).conv("b", 5).dense("d", 3).graph()
    for values in graph.constants.values():
        values[:] = np.abs(values) % 7 + 1  # so that every sum is large
    hardware = load_hardware(weights_in=weights_in)
    plan = Herringbone().plan(graph, hardware)
    write(tmp_path, {**codegen.generate(graph, plan, hardware, {}), **harness_sources(hardware)})
    size = toolchain.build(tmp_path, tmp_path / "build", hardware)
    full, empty = np.full((1, 5, 5, 3), 3, np.uint8), np.zeros((1, 5, 5, 3), np.uint8)
    assert all((each > 0).all() for each in graph.run(full.astype(np.int64)).values())
    taken = {}
    for name, image in (("full", full), ("empty", empty)):
        sent = dataclasses.asdict(size)
        try:
            runs = simavr.run(tmp_path / "build", sent, hardware, image)
        except ThimbleError as error:
            pytest.skip(str(error))
        equal(runs.outputs, graph.outputs(image.astype(np.int64)))
        taken[name] = int(runs.latency_cycles[0]), runs.unskipped_cycles
    (without, announced), (with_zeros, of_zeros) = taken["full"], taken["empty"]
    assert announced == without
    assert of_zeros is not None and of_zeros > 1.2 * with_zeros
    assert abs(of_zeros - without) < 0.02 * without  # sums of other numbers end a little faster


def elf(code: list[int]) -> bytes:
    """As much of one as is looked at: a segment of flash at byte 100."""
    head = bytearray(100)
    struct.pack_into("<I", head, 28, 52)
    struct.pack_into("<2H", head, 42, 32, 1)
    struct.pack_into("<4I", head, 52, 1, 100, 0, 0)
    return bytes(head) + struct.pack(f"<{len(code)}H", *code)


def test_bytes_of_two_activations_and_other_registers_are_known() -> None:
    of_r20, of_weights = TEST | 0x40, TEST | 0xB0
    code = [BYTE, IF_ZERO | 50 << 3, of_r20, IF_ZERO | 5 << 3, of_weights, 0x9F4B]
    patched, found = no_skips(elf(code), [(0, 12)])
    assert found == 2
    assert list(struct.unpack_from("<6H", patched, 100)) == [
        BYTE, 0, of_r20, 0, of_weights, 0x9F4B
    ]  # fmt: skip


def test_only_skips_in_functions_are_patched() -> None:
    back = UNLESS_ZERO | (0x7F & -3) << 3
    code = [TEST, IF_ZERO | 5 << 3, TEST, back, TEST, IF_ZERO | 1 << 3, 0x2411, IF_ZERO]
    patched, found = no_skips(elf(code), [(0, 8), (12, 4)])
    assert found == 2
    assert list(struct.unpack_from("<8H", patched, 100)) == [
        TEST, 0, TEST, 0xC000 | 0xFFF & -3, TEST, IF_ZERO | 1 << 3, 0x2411, IF_ZERO
    ]  # fmt: skip
    assert no_skips(elf(code), []) == (elf(code), 0)
