"""Cycles by layer: what the steps of nn_invoke add up to, and that the chip's are seen exactly."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen.names import identifier
from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware
from pipeline.targets import device, simavr, toolchain
from pipeline.targets.layers import REST, Layers, of_functions
from pipeline.targets.runs import Runs
from tests.comparing import equal
from tests.targets.conftest import generate, model, needs_avr

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
