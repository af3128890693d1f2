"""The tape says the calls that it stands for, and C runs them; it waits for input inside."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.codegen import generate, tape
from pipeline.codegen.int8.values import Atom, Value
from pipeline.codegen.statements import PLACE, Argument, Call, Line
from pipeline.codegen.tape import Case, Tape, statements
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.verify import verify
from pipeline.schedules import rows
from pipeline.schedules.lower import lay, needed
from pipeline.search.layouts import in_blocks
from pipeline.targets import simavr
from tests.codegen.support import Native, agrees, frames
from tests.comparing import equal
from tests.graphs import Net, random_graph
from tests.schedules.on_demand import all_rows
from tests.schedules.test_rows import laid
from tests.strategies.chains import Chain, board
from tests.targets.conftest import load_hardware, needs_avr
from tests.targets.cortex_m import board_named, built, needs_arm, outputs, simulated
from tests.tiers import quick

ARENA = f"(int8_t *)&nn_arena[{PLACE}]"


def at(address: int) -> Argument:
    return Argument(ARENA, Value(address))


def number(value: int) -> Argument:
    return Argument(PLACE, Value(value))


def lines(*calls: Call) -> list[Line]:
    return [Line(0, call) for call in calls]


def forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tape, "LEAST_GAIN_BYTES", -(1 << 30))


def said(found: Tape, stretch: int = 0) -> list[str]:
    """What the tape calls, worked out from its C."""
    result, entries = [], found.entries[found.stretches[stretch].entries]
    while entries:
        case = found.cases[entries[0]]
        arguments = [_worked_out(argument, entries) for argument in case.arguments]
        result.append(f"{case.function}({', '.join(arguments)});")
        entries = entries[case.size :]
    return result


def _worked_out(argument: str, entries: Sequence[int]) -> str:
    text = re.sub(r"NN_ENTRY\((\d+)\)", lambda m: str(entries[int(m[1])]), argument)
    text = re.sub(r"\(int32_t\)|(?<=\d)ul?\b", "", text)
    if " ? " in text:
        test, text = text.split(" ? ")
        text = text.split(" : ")[not eval(test)]
    return re.sub(r"(?<=\[).*(?=\])|^[-(\d].*\d\)?$", lambda m: str(eval(m[0])), text)


FUNCTIONS = ("first", "second", "third")


@st.composite
def calls(draw: st.DrawFn) -> list[Call]:
    """Some functions, with as many arguments each as they have letters less four."""
    addresses = st.builds(
        lambda n, unit: at(n * unit), st.integers(0, 400), st.sampled_from((1, 4, 320))
    )
    other = st.just(Argument("nn_zeros"))
    kinds = st.one_of(addresses, st.integers(-5, 70_000).map(number), other)
    found = []
    for name in draw(st.lists(st.sampled_from(FUNCTIONS), min_size=4, max_size=12)):
        count = len(name) - 4
        arguments = draw(st.lists(kinds, min_size=count, max_size=count))
        found.append(Call(name, tuple(arguments)))
    return found


@given(calls())
def test_a_tape_says_what_is_called(given: list[Call]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        forced(patch)
        found = tape.tape(lines(*given))
    assert said(found) == [str(call) for call in given]
    assert max(found.entries) < 1 << found.bits


def test_what_is_equal_or_moves_together_has_no_entry_of_its_own() -> None:
    """Rows of 320 B: where they begin, which they are, and the one after."""
    rows = [Call("f", (at(64 + 320 * y), number(y), number(y + 1), number(7))) for y in (0, 2, 6)]
    case = Case.of(rows, 16)
    assert case.columns == ((0, 1, 3),)
    assert case.arguments == (
        "(int8_t *)&nn_arena[640 * NN_ENTRY(1) + 64]",
        "2 * NN_ENTRY(1)",
        "2 * NN_ENTRY(1) + 1",
        "7",
    )


def test_a_row_outside_of_the_image_is_another_pointer() -> None:
    zeros = Argument("nn_zeros")
    case = Case.of([Call("f", (pointer,)) for pointer in (zeros, at(8), at(0))], 16)
    assert case.columns == ((0, 2, 1),)
    assert case.arguments == ("NN_ENTRY(1) ? (int8_t *)&nn_arena[8 * NN_ENTRY(1) - 8] : nn_zeros",)


@pytest.mark.parametrize(
    "most, calls, bits, entries",
    [
        (255, 4, 8, 8),
        (256, 4, 16, 8),
        (256, 100, 8, 300),
        (65_535, 4, 16, 8),
        (65_536, 4, 16, 12),
        (1 << 24, 100, 8, 400),
    ],
)
def test_entries_are_as_wide_as_takes_least(
    most: int, calls: int, bits: int, entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What does not fit one is in several."""
    forced(monkeypatch)
    given = [Call("f", (number(n),)) for n in (*range(calls - 1), most)]
    found = tape.tape(lines(*given))
    assert (found.bits, len(found.entries)) == (bits, entries)
    assert f"const uint{bits}_t nn_tape[{entries}]" in found.code()
    assert said(found) == [str(call) for call in given]


def test_more_functions_than_a_byte_can_number(monkeypatch: pytest.MonkeyPatch) -> None:
    forced(monkeypatch)
    given = [Call(f"f{n}", ()) for n in range(257)]
    found = tape.tape(lines(*given))
    assert found.bits == 16 and said(found) == [str(call) for call in given]


def test_addresses_count_in_words() -> None:
    case = Case.of([Call("f", (at(n),)) for n in (0, 4 * 65_535, 4)], 16)
    assert case.columns == ((0, 65_535, 1),)


def test_numbers_below_zero_and_wide_ones_are_no_int_of_16_bits() -> None:
    case = Case.of(
        [Call("f", (number(a), number(b))) for a, b in ((-3, 0), (-1, 40_000), (0, 3))], 16
    )
    assert case.arguments == ("(int32_t)NN_ENTRY(1) - 3", "(int32_t)NN_ENTRY(2)")


def test_a_short_program_stays_one() -> None:
    few = lines(*(Call(f"f{n}", (at(4 * n), at(64))) for n in range(20)))
    assert tape.tape(few) == Tape() and Tape().code() == ""
    assert statements(few, Tape()) == [str(line) for line in few]


def test_loops_stay_between_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    forced(monkeypatch)
    run = lines(*(Call("f", (at(4 * n),)) for n in range(5)))
    loop = [Line(0, "for (;;) {"), Line(1, Call("f", (at(0),))), Line(0, "}")]
    program = [*run, *loop, *run[:2], Line(0, "}"), *run]
    found = tape.tape(program)
    assert statements(program, found) == [
        "    nn_steps(&nn_tape[0], &nn_tape[10]);",
        *map(str, [*loop, *run[:2], Line(0, "}")]),
        "    nn_steps(&nn_tape[10], &nn_tape[20]);",
    ]
    assert said(found, 1) == [str(line.content) for line in run]


def test_what_counts_with_a_loop_is_no_step() -> None:
    """A number that is not known stays in its statement."""
    moving = Argument(ARENA, Value(0, ((Atom("i", 0, 3), 4),)))
    assert tape.tape(lines(*[Call("f", (moving,))] * 9)) == Tape()


# --- in C


def check(
    graph: Graph, folder: Path, hardware: Hardware, streamed: bool, chunks: Sequence[int | None]
) -> None:
    plan = laid(graph, streamed).plan("rows")
    verify(plan, graph)
    native = Native(folder, graph, plan, hardware)
    source = (folder / "model.c").read_text()
    assert "nn_steps(&nn_tape[0]" in source or "NN_STEPS(1, 0, " in source
    assert all(agrees(native, 3, chunk) for chunk in chunks)


def plain(core: str = "host") -> Hardware:
    return replace(board(False, "flash", 1 << 24), core=core, cpu="cortex-m4", flash_bytes=1 << 26)


@pytest.mark.parametrize(
    ("seed", "core"),
    quick(1, [(seed, core) for seed in range(1, 10) for core in ("avr", "host", "cortex_m")], ci=4),
)
def test_random_networks(
    seed: int, core: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced(monkeypatch)
    check(random_graph(seed), tmp_path, plain(core), False, (None,))


@pytest.mark.parametrize(
    ("seed", "core"),
    quick(1, [(seed, core) for seed in range(2, 16, 2) for core in ("avr", "host")], ci=2),
)
def test_random_networks_run_as_pieces_of_any_size_arrive(
    seed: int, core: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced(monkeypatch)
    graph = random_graph(seed)
    if len(graph.tensors[graph.input].shape) != 3:
        pytest.skip("the input has no rows")
    hardware = replace(plain(core), streams_input=True)
    check(graph, tmp_path, hardware, True, (1, 7, 50, None))


def separable(height: int) -> Graph:
    net = Net((height, 6, 2), np.random.default_rng(1), name="separable")
    net.conv(4)
    net.depthwise()
    net.conv(6, (1, 1))
    net.maximum((2, 2), stride=(2, 2))
    net.depthwise()
    net.conv(5, (1, 1))
    net.dense(4)
    return net.graph()


@pytest.mark.parametrize(
    ("streamed", "core"),
    quick(1, [(True, "avr"), (False, "host"), (True, "host"), (False, "avr")], ci=1),
)
def test_rows_of_nibbles(
    streamed: bool, core: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines of pixels and their number are what differs."""
    forced(monkeypatch)
    hardware = replace(plain(core), streams_input=streamed)
    check(nibbles(), tmp_path, hardware, streamed, (1, 9, None) if streamed else (None,))
    assert "(&nn_lines[" in (tmp_path / "model.c").read_text()


def nibbles() -> Graph:
    chain = Chain((14, 7, 1)).conv("a", 4).conv("b", 5)
    return chain.maximum("pool", kernel=(2, 1), stride=(2, 1)).conv("c", 3, dtype="int8").graph()


@pytest.mark.ci
def test_rows_in_blocks_run_as_pieces_of_any_size_arrive(tmp_path: Path) -> None:
    """Kernels made for rows: a pointer to each, to a row of zero points outside of the image."""
    graph, hardware = separable(24), replace(plain("cortex_m"), streams_input=True)
    operators, whole = needed(graph), frozenset([graph.output])
    order = all_rows(graph, hardware, operators, streamed=True)
    pixels = in_blocks(graph, operators, hardware, whole)
    regions = [rows.Streamed(graph.input), rows.Rows(order, whole, pixels)]
    plan = lay(regions, graph, hardware).plan("rows")
    verify(plan, graph)
    native = Native(tmp_path, graph, plan, hardware)
    source = (tmp_path / "model.c").read_text()
    assert "NN_STEPS(1, 0, " in source and " : &nn_outside_" in source
    assert all(agrees(native, 3, chunk) for chunk in (1, 7, 50, None))


@pytest.mark.parametrize("scratch", [False, True])
def test_all_rows_of_an_operator_have_one_function_apart_and_one_over_their_input(
    scratch: bool,
) -> None:
    """At the edges and inside, forwards and backwards; sums are opened and ended besides."""
    graph, hardware = separable(24), plain("cortex_m")
    found = laid(graph, hardware=hardware, scratch=scratch)
    source = generate(graph, found.plan("rows"), hardware, {})["model.c"]
    functions = re.findall(r"^static .*NN_KERNEL void (\w+)\(", source, re.MULTILINE)
    over = [name for name in functions if "_over" in name]
    assert len(over) <= len(graph.operators) >= len(functions) - len(over) - 2
    assert "nn_steps(&nn_tape[0]" in source


@needs_avr
@pytest.mark.parametrize(
    ("kind", "streamed"),
    quick(0, [("bytes", True), ("nibbles", False), ("nibbles", True), ("bytes", False)], ci=2),
)
def test_an_avr_runs_it(
    kind: str, streamed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tables are in flash, its switch is no computed jump: the stack has a bound."""
    forced(monkeypatch)
    graph = separable(8) if kind == "bytes" else nibbles()
    hardware = load_hardware(weights_in="flash", streams_input=streamed, baud=1200)
    plan = laid(graph, streamed).plan("rows")
    size = built(tmp_path, graph, hardware, plan)
    sources = {path.name: path.read_text() for path in (tmp_path / "generated").iterdir()}
    assert "nn_tape[" in sources["model.c"] and "steps.json" not in sources
    images = frames(graph, 3)
    runs = simavr.run(
        tmp_path / "build", vars(size), hardware, images.astype(np.int8).view(np.uint8)
    )
    equal(outputs(graph, runs), graph.outputs(images))
    assert 0 < (runs.stack_bytes or 0) <= size.stack_bound_bytes


@needs_arm
@pytest.mark.parametrize("name", quick(0, ["nucleo_g0b1re", "nucleo_f446re"], ci=1))
def test_cortex_m_runs_it(name: str, tmp_path: Path) -> None:
    """Long enough for a tape by itself."""
    graph, hardware = separable(40), board_named(name)
    plan = laid(graph).plan("rows")
    size = built(tmp_path, graph, hardware, plan)
    assert "nn_tape[" in (tmp_path / "generated" / "model.c").read_text()
    images = frames(graph, 2)
    runs = simulated(tmp_path, graph, hardware, size, images)
    equal(outputs(graph, runs), graph.outputs(images))
    assert 0 < (runs.stack_bytes or 0) <= size.stack_bound_bytes
