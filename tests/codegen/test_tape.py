"""The tape says the calls that it stands for, and C runs them; it waits for input inside."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.codegen import generate, tape
from pipeline.codegen.c.values import Atom, Value
from pipeline.codegen.statements import PLACE, Argument, Call, Line
from pipeline.codegen.tape import Case, Tape, statements
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Plan
from pipeline.schedules import rows
from pipeline.schedules.draft import Draft
from pipeline.schedules.lower import lay, needed
from pipeline.search.layouts import in_blocks
from tests.codegen.cortex_m.support import all_rows
from tests.codegen.support import Native, agrees, on_board
from tests.graphs import Chained, Net, random_graph
from tests.schedules.test_rows import laid
from tests.strategies.chains import Chain, board
from tests.targets.conftest import load_hardware, needs_avr
from tests.targets.cortex_m import board_named, needs_arm
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
    """List what the tape calls, worked out from its C."""
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


ZEROS = Argument("nn_zeros")
CASES: list[tuple[list[tuple[Argument, ...]], tuple[tuple[int, ...], ...], tuple[str, ...]]] = [
    # rows of 320 B: where they begin, which they are, and the one after; 7 has no entry of its own
    (
        [(at(64 + 320 * y), number(y), number(y + 1), number(7)) for y in (0, 2, 6)],
        ((0, 1, 3),),
        ("(int8_t *)&nn_arena[640 * NN_ENTRY(1) + 64]", "2 * NN_ENTRY(1)", "2 * NN_ENTRY(1) + 1",
         "7"),
    ),
    # a row outside of the image is another pointer
    (
        [(ZEROS,), (at(8),), (at(0),)],
        ((0, 2, 1),),
        ("NN_ENTRY(1) ? (int8_t *)&nn_arena[8 * NN_ENTRY(1) - 8] : nn_zeros",),
    ),
    # addresses count in words
    (
        [(at(0),), (at(4 * 65_535),), (at(4),)], ((0, 65_535, 1),),
        ("(int8_t *)&nn_arena[4 * (int32_t)NN_ENTRY(1)]",),
    ),
    # numbers below zero, and wide ones, are no int of 16 bits
    (
        [(number(-3), number(0)), (number(-1), number(40_000)), (number(0), number(3))],
        ((0, 2, 3), (0, 40_000, 3)), ("(int32_t)NN_ENTRY(1) - 3", "(int32_t)NN_ENTRY(2)"),
    ),
]  # fmt: skip
"""Arguments of calls, the entries of each, and what the C of a call says."""


@pytest.mark.parametrize(("given", "columns", "arguments"), CASES)
def test_what_calls_share_has_no_entry_of_its_own(
    given: list[tuple[Argument, ...]], columns: object, arguments: object
) -> None:
    case = Case.of([Call("f", each) for each in given], 16)
    assert (case.columns, case.arguments) == (columns, arguments)


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
    """Spread what does not fit one entry over several."""
    forced(monkeypatch)
    given = [Call("f", (number(n),)) for n in (*range(calls - 1), most)]
    found = tape.tape(lines(*given))
    assert (found.bits, len(found.entries)) == (bits, entries)
    assert f"const uint{bits}_t nn_tape[{entries}]" in found.code()
    assert said(found) == [str(call) for call in given]
    many = [Call(f"f{n}", ()) for n in range(257)]  # more functions than a byte can number
    found = tape.tape(lines(*many))
    assert found.bits == 16 and said(found) == [str(call) for call in many]


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


def plain(core: str = "host", streams: bool = False) -> Hardware:
    found = replace(board(streams, "flash", 1 << 24), flash_bytes=1 << 26)
    return replace(found, core=core, cpu="cortex-m4")


def separable(height: int) -> Graph:
    net = Chained(Net((height, 6, 2), np.random.default_rng(1), name="separable")).conv(4)
    net.depthwise().conv(6, (1, 1))
    return net.maximum((2, 2), stride=(2, 2)).depthwise().conv(5, (1, 1)).dense(4).graph()


def nibbles() -> Graph:
    """Lines of pixels and their number are what differs."""
    chain = Chain((14, 7, 1)).conv("a", 4).conv("b", 5)
    return chain.maximum("pool", kernel=(2, 1), stride=(2, 1)).conv("c", 3, dtype="int8").graph()


def in_rows(graph: Graph, streamed: bool, hardware: Hardware) -> Plan:
    return laid(graph, streamed).plan("rows")


def in_blocks_of_rows(graph: Graph, streamed: bool, hardware: Hardware) -> Plan:
    """Kernels made for rows: a pointer to each, to a row of zero points outside of the image."""
    operators, whole = needed(graph), frozenset([graph.output])
    order = all_rows(graph, hardware, operators, streamed=streamed)
    pixels = in_blocks(graph, operators, hardware, whole)
    regions = [rows.InputRows(graph.input, True, False), rows.Rows(order, whole, pixels)]
    return lay(regions, Draft(graph, hardware)).plan("rows")


IMAGES = [n for n in range(2, 16, 2) if len(random_graph(n).tensors["image"].shape) == 3]
NETWORKS = [
    (random_graph(1), "avr", False), (random_graph(2), "avr", True), (nibbles(), "avr", True),
    # those of CI
    (random_graph(1), "host", False), (random_graph(1), "cortex_m", False),
    (random_graph(2), "avr", False), (random_graph(3), "cortex_m", False),
    (random_graph(2), "host", True), (random_graph(4), "avr", True), (nibbles(), "host", False),
    (separable(24), "cortex_m", True),
    *((random_graph(n), core, False) for n in range(2, 10) for core in ("avr", "host", "cortex_m")),
    *((random_graph(n), core, True) for n in IMAGES for core in ("avr", "host")),
    (nibbles(), "host", True), (nibbles(), "avr", False),
]  # fmt: skip


@pytest.mark.parametrize("number", quick(3, range(len(NETWORKS)), ci=8))
def test_networks_as_pieces_of_any_size_arrive(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced(monkeypatch)
    graph, core, streams = NETWORKS[number]
    hardware = plain(core, streams)
    blocks = graph.name == "separable"
    plan = (in_blocks_of_rows if blocks else in_rows)(graph, streams, hardware)
    verify(plan, graph)
    native = Native(tmp_path, graph, plan, hardware)
    source = (tmp_path / "model.c").read_text()
    assert "nn_steps(&nn_tape[0]" in source or "NN_STEPS(1, 0, " in source
    assert not blocks or " : &nn_outside_" in source
    assert graph.name != "chain" or "(&nn_lines[" in source
    assert all(agrees(native, 3, chunk) for chunk in ((1, 7, 50, None) if streams else (None,)))


@pytest.mark.parametrize("scratch", quick(1, [False, True]))
def test_rows_of_an_operator_have_one_function_apart_and_one_each_way_over_their_input(
    scratch: bool,
) -> None:
    """At the edges and inside; sums are opened and ended besides."""
    graph, hardware = separable(24), plain("cortex_m")
    found = laid(graph, hardware=hardware, scratch=scratch)
    source = generate(graph, found.plan("rows"), hardware, {})["model.c"]
    functions = re.findall(r"^static .*NN_KERNEL void (\w+)\(", source, re.MULTILINE)
    made = [name for name in functions if not name.endswith(("_clear", "_finish"))]
    each = Counter(name.split("_")[1] for name in made)
    assert each.keys() == {op.name for op in graph.operators}
    assert max(each.values()) == 2 + scratch
    assert any("_over" in name for name in made)
    assert "nn_steps(&nn_tape[0]" in source


BOARDS = [
    # an AVR's tables are in flash, its switch is no computed jump: the stack has a bound
    *((graph, load_hardware(weights_in="flash", streams_input=streamed, baud=1200))
      for graph, streamed in ((separable(8), True), (nibbles(), False), (nibbles(), True),
                              (separable(8), False))),
    # long enough for a tape by itself
    *((separable(40), board_named(name)) for name in ("nucleo_g0b1re", "nucleo_f446re")),
]  # fmt: skip


@needs_avr
@needs_arm
@pytest.mark.parametrize("number", quick(0, [0, 1, 4, 2, 3, 5], ci=3))
def test_boards_run_it(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, hardware = BOARDS[number]
    if hardware.core == "avr":
        forced(monkeypatch)
    plan = laid(graph, hardware.core == "avr" and hardware.streams_input).plan("rows")
    _, runs = on_board(tmp_path, graph, hardware, plan)
    sources = {path.name: path.read_text() for path in (tmp_path / "generated").iterdir()}
    assert "nn_tape[" in sources["model.c"] and runs.stack_bytes
    assert hardware.core != "avr" or "steps.json" not in sources
