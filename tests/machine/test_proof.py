"""Proofs of the machine code: of right networks, and what each kind of wrong one is told."""

from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from pipeline import passes
from pipeline.hardware import FlashTiming, Memory
from pipeline.machine import decode, said
from pipeline.machine.proof import Traced, proof
from pipeline.plan import vocabulary as v
from pipeline.strategies.base import Strategy
from pipeline.strategies.in_place import Herringbone
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.int8.support import frames, network
from tests.importers.test_states import PASSES
from tests.importers.tflite_reference import imported
from tests.importers.tflite_variables import variable
from tests.machine.mutants import mutants
from tests.targets.cortex_m import board_named, built, built_stand_in, needs_arm, simulated

pytestmark = [pytest.mark.usefixtures("compiled_once", "no_host"), needs_arm]
BOARD = "nucleo_f446re"
TICK = 40
"""Instructions in which the simulated timer counts."""
WAYS = ((Joint(), False), (Ordinary(), True), (Herringbone(), False))


@pytest.mark.ci
@pytest.mark.parametrize(("strategy", "streams"), WAYS)
def test_a_network_is_proved(
    strategy: Strategy, streams: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one whose input streams in nn_feed, too, which the firmware's timer does not count."""
    graph, board = network(), replace(board_named(BOARD), streams_input=streams)
    plan = strategy.plan(graph, board)
    size = built(tmp_path, graph, board, plan)
    runs = simulated(tmp_path, graph, board, size, frames(graph, 2))
    places = tmp_path / "build", vars(size), board, plan, graph
    found = proof(*places, tmp_path / "generated", {"modelled_cycles": runs.modelled_cycles})
    evidence = found.pop("evidence")
    assert found["proof_machine"] in (said.COMPLETE, said.BOUNDED), evidence
    assert evidence["deviations"] == 0 and "wcet_cycles" not in found, "this flash has caches"
    assert runs.instructions is not None
    more = found["worst_instructions"] - runs.instructions
    assert more.min() >= -TICK and (streams or more.max() <= TICK)
    elf, right, seen = tmp_path / "build" / "firmware.elf", Traced.run(*places), 0
    for _, content in islice(mutants(elf, 1, "store"), 4):
        elf.write_bytes(content)
        wrong = Traced.run(*places)
        seen += wrong.kind == said.NONE or wrong.found.outputs != right.found.outputs
    assert seen >= 3, "one may be of what is never executed"
    row = decode.row
    monkeypatch.setattr(decode, "row", lambda i: replace(row(i), sources=()))
    odd = {each.what for each in Traced.run(*places).found.deviations}
    assert "constant" in odd, "labels are lost"


@pytest.mark.ci
def test_what_a_call_keeps_is_an_input_of_the_next(tmp_path: Path) -> None:
    """A ring of frames is joined where it lies, and moves to the front."""
    ring = imported(variable(np.random.default_rng(1)), tmp_path)
    graph, board = passes.applied(ring, PASSES), board_named(BOARD)
    plan = Ordinary().plan(graph, board)
    size = built(tmp_path, graph, board, plan)
    found = Traced.run(tmp_path / "build", vars(size), board, plan, graph)
    assert not found.against and found.kind in (said.COMPLETE, said.BOUNDED)


def test_the_worst_case_is_of_cores_without_caches() -> None:
    device, plain = {"modelled_cycles": {"high": 640}}, FlashTiming(2, 8)
    board = replace(board_named(BOARD), flash_timing=plain, clock_hz=64_000_000)
    found = said.proved(said.COMPLETE, 500, board, device)
    assert (found["wcet_cycles"], found["wcet_us"]) == (640, 10)
    assert found["proof_said"].splitlines()[1] == "Worst case: 640 cycles, modelled."
    for other in (replace(board, cpu="cortex-m7"), board_named(BOARD)):
        assert "wcet_us" not in said.proved(said.COMPLETE, 500, other, device)
    assert said.said(found | {"evidence": {}}) == found


FUNCTIONS = {
    "copies": ("for (int n = 0; n < 4; n++) { nn_arena[16 + n] = nn_arena[n]; }", set()),
    "branches": ("for (int n = nn_arena[0]; n >= 0; n--) { __asm__ volatile(\"nop\"); } FINE",
                 {"branch"}),
    "takes": ("int n = 1; if (nn_arena[0] & 1) { ODD } FINE nn_arena[16] = nn_arena[16 + n];",
              {"arms", "address"}),
    "skips": ("int n = 1; if (~nn_arena[0] & 1) { ODD } FINE nn_arena[16] = nn_arena[16 + n];",
              {"arms", "address"}),
    "addresses": ("FINE nn_arena[16] = nn_arena[16 + (nn_arena[0] & 3)];", {"address"}),
    "looks": ("FINE nn_arena[16] = (uint8_t)nn_table[nn_arena[0]];", {"index"}),
    "divides": ("FINE nn_arena[16] = (uint8_t)(1000u / (nn_arena[0] | 1u));", {"variable"}),
    "reads": ("FINE nn_arena[16] ^= nn_arena[5];", {"impure", "read"}),
    "writes": ("FINE nn_arena[21] = 0;", {"write"}),
    "leaves": ("for (int n = 0; n < 4;) { nn_arena[16] ^= nn_arena[n++]; }", {"read", "unwritten"}),
    "ignores": ("nn_arena[16] = nn_arena[17] = nn_arena[18] = nn_arena[19] = 0;", {"unread"}),
    "keeps": ("FINE nn_arena[16] ^= nn_arena[24];", {"impure"}),
    "strays": ("FINE uint32_t at = 0x40000; __asm__ volatile(\"\" : \"+r\"(at)); "
               "nn_arena[16] = *(volatile uint8_t *)at;", {"outside"}),
    "floats": ("FINE __asm__ volatile(\"vadd.f32 s0, s0, s0\");", {"refused"}),
}  # fmt: skip
FINE = "for (int n = 0; n < 4; n++) { nn_arena[16 + n] = nn_arena[n]; }"
"""Functions of steps that make bytes 16 to 19 of bytes 0 to 3, with bytes 24 to 27 as scratch, and
what each does besides."""


def stand_in(folder: Path) -> Traced:
    board, names = board_named(BOARD), list(FUNCTIONS)
    table = "static const uint32_t nn_table[256] = {1};\n#ifdef __ARM_ARCH_PROFILE\n"
    body = (
        "".join(
            f"__attribute__((noinline)) static void nn_{name}(void) {{ {code} }}\n"
            for name, (code, _) in FUNCTIONS.items()
        )
        .replace("FINE", FINE)
        .replace("ODD", '__asm__ volatile("movs %0, #2" : "+l"(n) :: "cc");')
    )
    calls = "".join(f"nn_{name}();\n" for name in names)
    size = built_stand_in(
        folder, board, globals=f"{table}{body}#endif",
        invoke=f"(void)nn_table;\n#ifdef __ARM_ARCH_PROFILE\n{calls}#endif",
    )  # fmt: skip
    places = {"in": 0, "out": 16, "spare": 24}
    buffers = [
        v.Buffer(name, "" if name == "spare" else name, "sram", (4,), 8, v.Affine(2 * at, (2,)),
                 "scratch" if name == "spare" else "activation")
        for name, at in places.items()
    ]  # fmt: skip
    source, out = (v.Slice(name, (0,), (4,)) for name in ("in", "out"))
    steps = tuple(v.Compute(name, out, (source,), scratch=("spare",)) for name in names)
    tracks = (v.Track("cpu", steps),)
    memories = (Memory("sram", 32),)
    plan = v.Plan("net", "by hand", memories, tuple(buffers), tracks, ("in",), ("out",))
    return Traced.run(folder / "build", vars(size), board, plan, network())


@pytest.mark.ci
def test_each_wrong_is_told_by_its_name(tmp_path: Path) -> None:
    """All in one program, a function each."""
    traced = stand_in(tmp_path)
    told = dict[str, set[str]]()
    for each in (*traced.found.dependences, *traced.found.deviations):
        function = traced.program.function_at(each.at)
        told.setdefault(function.name.removeprefix("nn_") if function else "", set()).add(each.what)
    assert {name: told.get(name, set()) for name in FUNCTIONS} == {
        name: wrong for name, (_, wrong) in FUNCTIONS.items()
    }
    assert traced.kind == said.NONE and "nn_" in traced.reason
    assert set(told) <= set(FUNCTIONS)
