"""The assembly on a cycle-exact chip equals the integer graph, for every shape it is used for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Self

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.codegen.int4 import code
from pipeline.codegen.int4.windows import Windows
from pipeline.graph.requant import PowerOfTwo
from pipeline.kernels import cycles_by_operator
from pipeline.plan.fit import roomy
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Compute, Move, Step, Table, Track, whole
from pipeline.strategies.base import Strategy
from pipeline.strategies.in_place import Herringbone, Replace, SingleTranspose
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.networks import (
    LARGE,
    PORTABLE,
    SHAPES,
    EvenRowsFirst,
    Make,
    bytes_only,
    cropped,
    made,
    mixed,
    separable,
    trained,
    windows,
)
from tests.codegen.support import frames, on_board
from tests.strategies.chains import Chain, mnist
from tests.targets.conftest import load_hardware, needs_avr
from tests.tiers import quick

pytestmark = needs_avr
STACK_BYTES = 64
SLOTS = Herringbone("slots")


def c_of(make: Make, strategy: Strategy = SLOTS, **board: object) -> str:
    graph, hardware = made(make), load_hardware(**board)  # type: ignore[arg-type]
    return generate(graph, strategy.plan(graph, hardware), hardware, {})["model.c"]


def uses_assembly(folder: Path, kernel: str) -> bool:
    """Check whether the kernel, or each of its parts, has assembly beside its portable twin."""
    code = (folder / "generated" / "model.c").read_text()
    parts = set(re.findall(rf"void (nn_{kernel}__part\d+)__pixel\(", code))
    return all(code.count(f"void {name}__pixel(") == 2 for name in parts or {f"nn_{kernel}"})


WHOLE = (SLOTS, Herringbone("contiguous"), SingleTranspose("slots"))
WEIGHTS_IN = ("sram", "flash", "stream")


@pytest.mark.parametrize(
    ("strategy", "weights_in"),
    quick(
        1,
        [*zip(WHOLE, WEIGHTS_IN, strict=True), *zip(WHOLE[1:], WEIGHTS_IN[::2], strict=True)],
        ci=2,
    ),
    ids=lambda s: s if isinstance(s, str) else f"{s.name}-{s.layout}",
)
def test_mnist(strategy: Herringbone, weights_in: str, tmp_path: Path) -> None:
    graph = mnist().graph()
    hardware = load_hardware(weights_in=weights_in)
    plan = strategy.plan(graph, hardware)
    size, runs = on_board(tmp_path, graph, hardware, plan, frames(graph, 2))
    assert runs.stack_bytes is not None and runs.stack_bytes <= STACK_BYTES
    kept = ("_window_weights", "_window_bias", "nn_parameters")
    weights = sum(n for name, n in size.ram_objects.items() if name.endswith(kept))
    assert weights == {"flash": 0, "sram": 1513, "stream": 1 + 1513}[weights_in]
    budget_ms = 60 if strategy.layout == "slots" else 110
    assert runs.compute_cycles.max() <= budget_ms * hardware.clock_hz // 1000
    assert all(uses_assembly(tmp_path, k) for k in ("conv1", "conv2", "conv3", "pool", "logits"))


@dataclass(frozen=True)
class Case:
    """A network, how it is planned, and the changes of its board.

    Attributes:
        assembly: kernels that have it, divided by spaces; ``portable``: one that has none.
        says: is in the C.
    """

    make: Make
    strategy: Strategy
    board: Mapping[str, object]
    tier: str = "ci"
    assembly: str = ""
    portable: str = ""
    says: tuple[str, ...] = ()

    @classmethod
    def of(cls, make: Make, strategy: Strategy = SLOTS, **more: object) -> Self:
        names = [name for name in ("tier", "assembly", "portable", "says") if name in more]
        own = {name: more.pop(name) for name in names}
        return cls(make, strategy, more, **own)  # type: ignore[arg-type]


def arriving(layout: str = "slots") -> Herringbone:
    return Herringbone(layout, convolve_arriving=True)  # type: ignore[arg-type]


def drawn(seed: int) -> Case:
    """Convolutions and a maximum of any size, weights in either memory, much flash or little."""
    rng = np.random.default_rng(seed)
    size, depth = rng.integers(6, 10, 2), int(rng.integers(1, 9))
    chain = Chain((*map(int, size), depth), seed=seed)
    for name in "ab":
        stride = (1, int(rng.integers(1, 3))) if name == "a" else (1, 1)
        chain.conv(name, int(rng.integers(1, 14)), (2, int(rng.integers(1, 4))), stride=stride)
    chain.maximum("m", kernel=(2, 1), stride=(2, 1)).dense("d", 3)
    board = {"weights_in": ("sram", "flash")[seed % 2]}
    board["flash_bytes"] = (32256, 3000)[seed // 2 % 2]  # type: ignore[assignment]
    return Case.of(lambda: chain, tier="ci" if seed < 4 else "slow", **board)


def signed(right_shift: int) -> Chain:
    """Signed results, as residual units add them up: halves are rounded to even on both sides."""
    chain = Chain((5, 5, 2)).conv("a", 5)
    chain.tensors["a"] = replace(chain.tensors["a"], zero_point=8)
    chain.operators[-1] = replace(chain.operators[-1], requant=PowerOfTwo(1, right_shift))  # type: ignore[call-arg]
    return chain.dense("logits", 3)


def pixels(*side: int) -> Chain:
    """An image whose pixels become nibbles, one by one."""
    return Chain((*side, 1), "uint8").average("p", 4, kernel=(1, 1), stride=(1, 1))


def shape(name: str, place: str, again: bool) -> Case:
    """A shape with weights in ``place``; ``again``: the other was first."""
    some = ("4 lanes", "9 lanes", "11 lanes", "13 lanes", "40 lanes")
    tier = "slow" if again or ("lanes" in name and name not in some) else "ci"
    if not again and name in ("1 lanes", "large kernel", "long column", "deep window", "23 deep"):
        tier = "today"
    make = (SHAPES | LARGE)[name]
    return Case.of(make, tier=tier, weights_in=place, assembly="a" * (name in SHAPES))


CASES: dict[str, Case] = {
    # a convolution while the image arrives on a line without gaps; bytes take longer in C
    "4 bits arrive": Case.of(
        lambda: Chain((9, 9, 1)).conv("a", 5, stride=(2, 2)).conv("b", 4).dense("d", 3),
        arriving(), tier="today",
    ),
    "8 bits to 4": Case.of(
        lambda: pixels(11, 12).conv("a", 5, 5, stride=(2, 2)).conv("b", 12).dense("d", 3),
        arriving(),
    ),
    "averages arrive": Case.of(
        lambda: Chain((14, 16, 1), "uint8").average("p").conv("a", 5).conv("b", 4).dense("d", 3),
        arriving(),
    ),
    "8 bits, then 4": Case.of(
        lambda: Chain((8, 8, 2), "uint8").conv("a", 4, dtype="int8").conv("b", 4).dense("d", 3),
        arriving(), baud=9600,
    ),
    # rows of a ring are far apart, and windows where places permute go by strides that vary
    "steps of windows and of the image have names of their own": Case.of(
        lambda: (
            Chain((13, 13, 1)).conv("a", 5, stride=(2, 2)).conv("b", 7).maximum("m").dense("d", 3)
        ),
        arriving("contiguous"), baud=19200, says=("uint16_t nn_step ", "int16_t nn_cell_step;"),
    ),
    "rows instead of tensors": Case.of(mnist, Joint()),
    # pixels of 24 channels that tables have the addresses of, in pieces
    **{
        f"deep rows instead of tensors, {flash_bytes}": Case.of(
            lambda: Chain((9, 10, 2)).conv("a", 16).conv("b", 24).conv("c", 9).dense("d", 3),
            Joint(), weights_in="flash", flash_bytes=flash_bytes, wait_bytes=20,
            says=tuple(f"ldi r22, {n}" for n in pieces),
        )
        for flash_bytes, pieces in ((32256, (2, 3)), (11000, (8, 12)))
    },
    **{
        f"short runs, {flash_bytes}": Case.of(
            SHAPES["40 lanes"], Ordinary("slots"), weights_in="flash", flash_bytes=flash_bytes
        )
        for flash_bytes in (10000, 4000)
    },
    **{
        f"{name}, by loops": Case.of(
            SHAPES[name], flash_bytes=3000, tier="ci" if name[0] in "48e" else "slow"
        )
        for name in ("4 lanes", "8 lanes", "9 lanes", "10 lanes", "11 lanes", "ends alike",
                     "deep rows")
    },
    **{
        name: Case.of(make, Ordinary("slots"), portable="a", tier="today")
        for name, make in PORTABLE.items()
    },
    **{
        f"a zero point, {n}": Case.of(
            lambda n=n: signed(n), Ordinary(), assembly="a", tier="today" if n == 1 else "ci"
        )
        for n in (1, 9)
    },
    "deep pixels scattered from one another beside a zero point": Case.of(
        lambda: cropped(16, 20), Replace(), weights_in="flash", tier="today",
        assembly="first a b wide",
    ),
    # a slow line, because bytes are computed in C while it goes on
    **{
        f"bits, rows that arrive and slots in one plan, {n}": Case.of(
            make, strategy, weights_in="flash", baud=2400, tier="ci" if n < 3 else "slow"
        )
        for n, (make, strategy) in enumerate(
            ((trained, arriving()), (mixed, arriving()), (mixed, Joint()), (trained, Joint()),
             (trained, Ordinary("slots")))
        )
    },
    "4 and 8 bits": Case.of(mixed, Ordinary("slots"), weights_in="flash", tier="today"),
    "8 bits": Case.of(lambda: bytes_only(8, 6, 2), Ordinary("slots")),
    # return addresses have three bytes; more than an Uno has is in use
    "a Mega": Case.of(
        lambda: bytes_only(32, 28, 2), Ordinary("slots"), name="arduino_mega", tier="today"
    ),
    "windows over rows": Case.of(
        lambda: windows(1), EvenRowsFirst(), weights_in="flash", streams_input=False
    ),
    "windows over rows on a Mega": Case.of(
        lambda: windows(1), EvenRowsFirst(), streams_input=False, name="arduino_mega"
    ),
    "depthwise": Case.of(lambda: separable(1, 4), weights_in="flash", tier="slow"),
    **{f"random layers, {seed}": drawn(seed) for seed in range(8)},
    **{
        f"{name}, {place}": shape(name, place, again)
        for again in (False, True)
        for name, place in zip(
            (*SHAPES, *LARGE), cycle(("flash", "sram") if again else ("sram", "flash")),
            strict=False,
        )
    },
}  # fmt: skip


def tiered(name: str) -> object:
    tier = CASES[name].tier
    return name if tier == "today" else pytest.param(name, marks=getattr(pytest.mark, tier))


@pytest.mark.parametrize("name", [*map(tiered, CASES)])
def test_on_the_chip(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    graph, hardware = made(case.make), load_hardware(**case.board)  # type: ignore[arg-type]
    plan, fits = case.strategy.plan(graph, hardware), "flash_bytes" not in case.board
    size, _ = on_board(tmp_path, graph, hardware, plan, fits=fits)
    in_ram = any("weights" in name for name in size.ram_objects)
    assert in_ram == (hardware.weights_in == "sram")
    assert all(uses_assembly(tmp_path, kernel) for kernel in case.assembly.split())
    assert not case.portable or not uses_assembly(tmp_path, case.portable)
    code = (tmp_path / "generated" / "model.c").read_text()
    assert all(word in code for word in case.says)


def test_lanes_share_their_end_where_flash_is_short() -> None:
    """Four parts of ten channels: biases are added once, or ten times, in the code of each."""
    for weights_in, each in (("flash", 1), ("sram", 10)):
        source = c_of(SHAPES["40 lanes"], weights_in=weights_in)
        parts = source[source.index("a__part0__pixel(") : source.index("nn_a__pixel(")]
        assert parts.count("sbrc r0, 7") == 4 * each


def test_runs_are_as_long_as_there_is_flash() -> None:
    """Of a window's row of 24 values eight are in the code, four, or two; otherwise in a loop."""
    taps = {}
    for room in (32256, 10000, 4000):
        source = c_of(SHAPES["40 lanes"], Ordinary("slots"), weights_in="flash", flash_bytes=room)
        taps[room] = len(set(re.findall(r"/\* tap (\d+) \*/", source)))
    assert taps == {32256: 8, 10000: 4, 4000: 2}
    for name in ("4 lanes", "11 lanes", "deep rows"):
        assert len(c_of(SHAPES[name], flash_bytes=3000)) < len(c_of(SHAPES[name]))


@pytest.mark.ci
def test_weights_too_many_for_code_take_longer_as_is_modelled(tmp_path: Path) -> None:
    """1,800 of them become instructions, 2,160 are read from flash."""
    hardware, modelled, measured = load_hardware(weights_in="flash"), [], []
    for depth in (20, 24):
        graph = Chain((7, 7, depth)).conv("a", 10, (3, 3)).dense("d", 2).graph()
        plan = Ordinary("slots").plan(graph, hardware)
        runs = on_board(tmp_path / str(depth), graph, hardware, plan)[1]
        measured.append(runs.layer_cycles.mean(axis=0)[1])
        modelled.append(cycles_by_operator(plan, graph, hardware)["a"])
    assert modelled[1] / modelled[0] == pytest.approx(measured[1] / measured[0], rel=0.3)


@pytest.mark.parametrize(("depth", "assembly"), [(24, True), (26, False)])
def test_the_longest_pixel_is_modelled_as_it_is_written(depth: int, assembly: bool) -> None:
    graph = Chain((6, 6, depth)).conv("a", 4, (3, 3)).dense("d", 2).graph()
    hardware = load_hardware(sram_bytes=16384, streams_input=False)
    plan = EvenRowsFirst().plan(graph, hardware)
    code = generate(graph, plan, hardware, {})["model.c"]
    soon = cycles_by_operator(plan, graph, hardware)["a"] < 500_000
    assert (soon, code.count("void nn_a__pixel(") == 2) == (assembly, assembly)


def test_scattered_pixels_are_tested() -> None:
    """A large address would have the flag that says so."""
    code, large = (c_of(SHAPES["scattered pixels"], sram_bytes=n) for n in (2048, 16384))
    assert ".Lscattered" in code and ".Lscattered" in large
    assert "%[gather]+" in code and "%[gather]+" not in large


@pytest.mark.parametrize(
    ("convolving", "weights_in"),
    quick(0, [(False, "flash"), (True, "sram"), (False, "sram"), (True, "flash")], ci=2),
)
def test_programs_are_no_larger_than_estimated(
    convolving: bool, weights_in: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check the estimate: what is written out until flash is used up depends on it."""
    known = list[Windows]()
    source = code.source
    monkeypatch.setattr(code, "source", lambda windows: known.append(windows) or source(windows))
    graph, hardware = mnist().graph(), load_hardware(weights_in=weights_in)
    plan = Herringbone("slots", convolve_arriving=convolving).plan(graph, hardware)
    size, _ = on_board(tmp_path, graph, hardware, plan, frames(graph, 2))
    kernels = known[0].kernels.values()
    estimated = code.rest_bytes(known[0]) + sum(code.kernel_bytes(k, known[0]) for k in kernels)
    assert size.flash_bytes <= estimated <= hardware.flash_bytes
    assert estimated < 1.1 * size.flash_bytes


@pytest.mark.ci
@pytest.mark.parametrize(
    ("layout", "most_bytes", "longer"), [("slots", 14_000, 1.15), ("contiguous", 16_500, 8)]
)
def test_small_kernels_halve_the_program(
    layout: str, most_bytes: int, longer: float, tmp_path: Path
) -> None:
    """In one piece, tensors are permuted by successor functions, which take long."""
    graph, measured = mnist().graph(), []
    for kernels in ("fast", "small"):
        hardware = load_hardware(kernels=kernels)
        plan = Herringbone(layout).plan(graph, hardware)
        folder = tmp_path / kernels
        folder.mkdir()
        size, runs = on_board(folder, graph, hardware, plan, frames(graph, 2))
        measured.append((size.flash_bytes, runs.latency_cycles.mean()))
    (fast_bytes, fast), (small_bytes, small) = measured
    assert small_bytes <= min(most_bytes, 0.7 * fast_bytes) and small <= longer * fast


def test_two_kernels_share_weights_that_only_one_reads(tmp_path: Path) -> None:
    """The first three pixels by weights as code; the last one from another view, by the array."""
    graph = Chain((6, 3, 2)).conv("a", 4).dense("d", 2).graph()
    hardware = load_hardware(weights_in="flash")
    plan = Ordinary("slots").plan(graph, hardware)
    image = plan.buffer["image"]
    order = np.random.default_rng(0).permutation(18)
    base = 2 * (max(int(b.addresses(b.box).max()) for b in plan.buffers if b.memory == "sram") + 8)
    cells = tuple(int(base + 2 * pixel + c) for pixel in order for c in range(2))
    scattered = replace(image, name="shuffled", map=Table(cells))
    steps: list[Step] = []
    for step in plan.tracks[0].steps:
        if isinstance(step, Compute) and step.op == "a":
            (kept,) = (s for s in step.ins if s.buffer == "image")
            rest = tuple(s for s in step.ins if s != kept)
            first = replace(step.out, size=(3, *step.out.size[1:]))
            last = replace(step.out, lo=(3, 0, 0), size=(1, *step.out.size[1:]))
            steps += [
                Compute("a", first, step.ins, step.unit),
                Move(whole(image), whole(scattered)),
                Compute("a", last, (whole(scattered), *rest), step.unit),
            ]
        else:
            steps.append(step)
    plan = replace(plan, buffers=(*plan.buffers, scattered), tracks=(Track("cpu", tuple(steps)),))
    verify(roomy(plan), graph)
    on_board(tmp_path, graph, hardware, plan)
    code = (tmp_path / "generated" / "model.c").read_text()
    assert uses_assembly(tmp_path, "a") and uses_assembly(tmp_path, "a_2")
    arrays, assembly = code.index("nn_a_window_weights["), code.index("void nn_a__pixel(")
    assert arrays < assembly and "ldi r30, lo8(%[weights])" in code


def test_twin_on_the_chip(tmp_path: Path) -> None:
    """-DNN_PORTABLE compiles the twin where assembly is the default: 16-bit int, same outputs."""
    graph = Chain((8, 8, 1), "uint8").average("p").conv("a", 5).dense("d", 3).graph()
    hardware, cycles = load_hardware(), []
    for flags in ((), ("-DNN_PORTABLE",)):
        tools = replace(hardware.toolchain, flags=(*hardware.toolchain.flags, *flags))
        twin = replace(hardware, toolchain=tools)
        plan = SLOTS.plan(graph, twin)
        cycles.append(on_board(tmp_path / f"{len(flags)}", graph, twin, plan)[1].compute_cycles)
    assert cycles[1].min() > 2 * cycles[0].max()
