"""The assembly on a cycle-exact chip equals the integer graph, for every shape it is used for."""

from __future__ import annotations

import dataclasses
import re
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.codegen.int4 import code, room
from pipeline.codegen.int4.windows import Windows
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.requant import PowerOfTwo
from pipeline.hardware import Hardware
from pipeline.plan.fit import roomy
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Compute, Move, Plan, Step, Table, Track, whole
from pipeline.strategies.chain import ChainStrategy
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.single_transpose import SingleTranspose
from pipeline.targets import simavr, toolchain
from pipeline.targets.harness import harness_sources
from pipeline.targets.runs import Runs
from tests.codegen.support import frames, write
from tests.comparing import equal
from tests.strategies.chains import Chain, mnist
from tests.targets.conftest import load_hardware, needs_avr
from tests.tiers import quick

pytestmark = needs_avr
STACK_BYTES = 64


@pytest.fixture(scope="module", autouse=True)
def simulator(tmp_path_factory: pytest.TempPathFactory) -> None:
    try:
        simavr.compile_shim(tmp_path_factory.mktemp("shim"))
    except ThimbleError as error:
        pytest.skip(str(error))


def on_chip(
    folder: Path, graph: Graph, plan: Plan, hardware: Hardware, count: int = 3
) -> tuple[toolchain.Size, Runs]:
    """Build, run ``count`` frames, compare every output."""
    write(folder, {**generate(graph, plan, hardware, {}), **harness_sources(hardware)})
    size = toolchain.build(folder, folder / "build", hardware)
    given = frames(graph, count)
    runs = simavr.run(folder / "build", dataclasses.asdict(size), hardware, given.astype(np.uint8))
    equal(runs.outputs, graph.outputs(given).reshape(count, -1))
    return size, runs


def uses_assembly(folder: Path, kernel: str) -> bool:
    """Whether the kernel, or each of its parts, has assembly beside its portable twin."""
    code = (folder / "model.c").read_text()
    parts = set(re.findall(rf"void (run_{kernel}_part\d+)_pixel\(", code))
    return all(code.count(f"void {name}_pixel(") == 2 for name in parts or {f"run_{kernel}"})


WHOLE = (Herringbone("slots"), Herringbone("contiguous"), SingleTranspose("slots"))
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
def test_mnist(strategy: ChainStrategy, weights_in: str, tmp_path: Path) -> None:
    graph = mnist().graph()
    hardware = load_hardware(weights_in=weights_in)
    size, runs = on_chip(tmp_path, graph, strategy.plan(graph, hardware), hardware, 2)
    assert size.status == "ok"
    assert runs.stack_bytes is not None and runs.stack_bytes <= STACK_BYTES
    kept = ("nn_weights_", "nn_bias_", "nn_parameters")
    weights = sum(n for name, n in size.ram_objects.items() if name.startswith(kept))
    assert weights == {"flash": 0, "sram": 1513, "stream": 1 + 1513}[weights_in]
    budget_ms = 60 if strategy.layout == "slots" else 110
    assert runs.compute_cycles.max() <= budget_ms * hardware.clock_hz // 1000
    assert all(uses_assembly(tmp_path, k) for k in ("conv1", "conv2", "conv3", "pool", "logits"))


SHAPES = {
    **{
        f"{lanes} lanes": (lambda lanes=lanes: Chain((5, 5, 4)).conv("a", lanes).dense("d", lanes))
        for lanes in range(1, 12)
    },
    "odd depth": lambda: Chain((6, 6, 3)).conv("a", 5).conv("b", 6, 1).dense("d", 10),
    "large kernel": lambda: Chain((8, 8, 2)).conv("a", 7, 5).dense("d", 3),
    "strides": lambda: Chain((9, 8, 4)).conv("a", 6, stride=(2, 3)).dense("d", 4),
    "dilation": lambda: Chain((9, 9, 2)).conv("a", 4, dilation=(2, 1)).dense("d", 4),
    "overlapping pool": lambda: (
        Chain((7, 7, 5)).maximum("a", kernel=(3, 3), stride=(2, 2)).dense("d", 9)
    ),
    "rows in one piece": lambda: Chain((7, 7, 2)).conv("a", 8).dense("d", 2),
    "long column": lambda: Chain((300, 4, 1)).conv("a", 1).dense("d", 2),
    "12 lanes": lambda: Chain((5, 5, 4)).conv("a", 12).dense("d", 2),
    "13 lanes": lambda: Chain((5, 5, 3)).conv("a", 13).dense("d", 2),
    "40 lanes": lambda: Chain((4, 3, 8)).conv("a", 40).dense("d", 2),
    "deep pixels": lambda: Chain((4, 4, 40)).conv("a", 3, 2).dense("d", 2),
    "deep rows": lambda: Chain((5, 5, 14)).conv("a", 6, stride=(2, 1)).dense("d", 2),
    "42 pooled": lambda: (
        Chain((4, 5, 42)).maximum("a", kernel=(2, 2), stride=(2, 1)).conv("b", 2, 1).dense("d", 2)
    ),
    "ends alike": lambda: Chain((5, 5, 8)).conv("a", 8).dense("d", 2),
    "deep window": lambda: Chain((2, 2, 16)).conv("a", 10, 1).conv("b", 11, 2).dense("d", 10),
    "torn pixels": lambda: Chain((7, 7, 7)).conv("a", 8, 5).conv("b", 11, 2).dense("d", 2),
}


SOME_LANES = [f"{lanes} lanes" for lanes in (1, 4, 9, 11)]


SOME_SHAPES = [name for name in SHAPES if "lanes" not in name or name in SOME_LANES]


@pytest.mark.parametrize(
    ("name", "weights_in"),
    quick(
        list(zip(SOME_SHAPES, cycle(["sram", "flash"]), strict=False))[::5],
        [
            *zip(SHAPES, cycle(["sram", "flash"]), strict=False),
            *zip(SHAPES, cycle(["flash", "sram"]), strict=False),
        ],
        ci=len(SHAPES) // 2,
    ),
)
def test_shapes(name: str, weights_in: str, tmp_path: Path) -> None:
    graph = SHAPES[name]().graph()
    hardware = load_hardware(weights_in=weights_in)
    on_chip(tmp_path, graph, Herringbone("slots").plan(graph, hardware), hardware)
    assert uses_assembly(tmp_path, "a")


ARRIVING = {
    "4 bits": lambda: Chain((9, 9, 1)).conv("a", 5, stride=(2, 2)).conv("b", 4),
    "8 bits to 4": lambda: (
        Chain((11, 12, 1), "uint8")
        .average("p", 4, kernel=(1, 1), stride=(1, 1))
        .conv("a", 5, 5, stride=(2, 2))
        .conv("b", 12)
    ),
    "averages": lambda: Chain((14, 16, 1), "uint8").average("p").conv("a", 5).conv("b", 4),
    "8 bits, then 4": lambda: Chain((8, 8, 2), "uint8").conv("a", 4, dtype="int8").conv("b", 4),
}


@pytest.mark.parametrize("name", quick(1, ARRIVING))
def test_a_convolution_while_the_image_arrives(name: str, tmp_path: Path) -> None:
    """On a line without gaps; bytes are computed in C, which takes longer."""
    graph = ARRIVING[name]().dense("d", 3).graph()
    hardware = load_hardware(baud=9600 if "then" in name else 115200)
    plan = Herringbone("slots", convolve_arriving=True).plan(graph, hardware)
    on_chip(tmp_path, graph, plan, hardware)


@pytest.mark.ci
def test_steps_of_windows_and_of_the_image_have_names_of_their_own(tmp_path: Path) -> None:
    """Rows of a ring are far apart, and windows where places permute go by strides that vary."""
    chain = Chain((13, 13, 1)).conv("a", 5, stride=(2, 2)).conv("b", 7).maximum("m")
    graph, hardware = chain.dense("d", 3).graph(), load_hardware(baud=19200)
    plan = Herringbone("contiguous", convolve_arriving=True).plan(graph, hardware)
    on_chip(tmp_path, graph, plan, hardware)
    code = (tmp_path / "model.c").read_text()
    assert "uint16_t nn_step " in code and "int16_t nn_cell_step;" in code


@pytest.mark.ci
def test_rows_instead_of_tensors(tmp_path: Path) -> None:
    """The dense layer takes all rows at once: no code adds up some of less than bytes."""
    graph, hardware = mnist().graph(), load_hardware()
    plan = Joint().plan(graph, hardware)
    verify(roomy(plan), graph)
    rows = [step for step in plan.tracks[0].steps if isinstance(step, Compute)]
    assert not any(step.partial for step in rows) and len(rows) > 3 * len(graph.operators)
    on_chip(tmp_path, graph, plan, hardware)


@pytest.mark.ci
@pytest.mark.parametrize("flash_bytes", [32256, 11000])
def test_deep_rows_instead_of_tensors(flash_bytes: int, tmp_path: Path) -> None:
    """Pixels of 24 channels that tables have the addresses of, in pieces; the host waits for what a
    row of the image makes possible."""
    chain = Chain((9, 10, 2)).conv("a", 16).conv("b", 24).conv("c", 9)
    graph = chain.dense("d", 3).graph()
    hardware = load_hardware(weights_in="flash", flash_bytes=flash_bytes, wait_bytes=20)
    on_chip(tmp_path, graph, Joint().plan(graph, hardware), hardware)
    pieces = set(re.findall(r"ldi r22, (\d+)", (tmp_path / "model.c").read_text()))
    assert pieces == ({"2", "3"} if flash_bytes == 32256 else {"8", "12"})


LARGE = {
    "23 deep": lambda: Chain((4, 4, 23)).conv("a", 10, 2),
    "deep pixels": lambda: Chain((2, 3, 140)).conv("a", 4, 1),
    "much code": lambda: Chain((3, 3, 81)).conv("a", 11, 1),
    "tall kernel": lambda: Chain((42, 1, 9)).conv("a", 2, (40, 1)),
    "tall pool": lambda: Chain((41, 2, 1)).maximum("a", kernel=(40, 1), stride=(40, 1)),
    "256 pooled": lambda: Chain((17, 16, 1)).maximum("a", kernel=(16, 16), stride=(16, 16)),
}


@pytest.mark.parametrize(
    ("name", "weights_in"),
    quick(
        1,
        [
            *zip(LARGE, cycle(["sram", "flash"]), strict=False),
            *zip(LARGE, cycle(["flash", "sram"]), strict=False),
        ],
        ci=len(LARGE) - 1,
    ),
)
def test_beyond_the_reach_of_instructions(name: str, weights_in: str, tmp_path: Path) -> None:
    """Offsets, immediate bytes and branches end somewhere; then another instruction, or C."""
    graph = LARGE[name]().dense("last", 2).graph()
    hardware = load_hardware(weights_in=weights_in)
    on_chip(tmp_path, graph, Herringbone("slots").plan(graph, hardware), hardware, 2)


@pytest.mark.parametrize("weights_in, each", [("flash", 1), ("sram", 10)])
def test_lanes_share_their_end_where_flash_is_short(weights_in: str, each: int) -> None:
    """Four parts of ten channels: biases are added once, or ten times, in the code of each."""
    graph = Chain((4, 3, 8)).conv("a", 40).dense("d", 2).graph()
    hardware = load_hardware(weights_in=weights_in)
    source = generate(graph, Herringbone("slots").plan(graph, hardware), hardware, {})["model.c"]
    parts = source[source.index("a_part0_pixel(") : source.index("run_a_pixel(")]
    assert parts.count("sbrc r0, 7") == 4 * each


def test_runs_are_as_long_as_there_is_flash() -> None:
    """Of a window's row, 24 values: eight of them in the code, four, or two."""
    graph, taps = Chain((4, 3, 8)).conv("a", 40).dense("d", 2).graph(), {}
    for flash_bytes in (32256, 10000, 4000):
        hardware = load_hardware(weights_in="flash", flash_bytes=flash_bytes)
        plan = Ordinary("slots").plan(graph, hardware)
        source = generate(graph, plan, hardware, {})["model.c"]
        taps[flash_bytes] = len(set(re.findall(r"/\* tap (\d+) \*/", source)))
    assert taps == {32256: 8, 10000: 4, 4000: 2}


@pytest.mark.ci
@pytest.mark.parametrize("flash_bytes", [10000, 4000])
def test_short_runs(flash_bytes: int, tmp_path: Path) -> None:
    graph = Chain((4, 3, 8)).conv("a", 40).dense("d", 2).graph()
    hardware = load_hardware(weights_in="flash", flash_bytes=flash_bytes)
    on_chip(tmp_path, graph, Ordinary("slots").plan(graph, hardware), hardware)


@pytest.mark.parametrize("seed", quick(0, range(8), ci=4))
def test_random_layers(seed: int, tmp_path: Path) -> None:
    """Two convolutions and a maximum of any sizes, weights in either memory, with flash to write
    windows out and without."""
    rng = np.random.default_rng(seed)
    size, depth = rng.integers(6, 10, 2), int(rng.integers(1, 9))
    chain = Chain((*map(int, size), depth), seed=seed)
    for name in "ab":
        stride = (1, int(rng.integers(1, 3))) if name == "a" else (1, 1)
        chain.conv(name, int(rng.integers(1, 14)), (2, int(rng.integers(1, 4))), stride=stride)
    graph = chain.maximum("m", kernel=(2, 1), stride=(2, 1)).dense("d", 3).graph()
    hardware = load_hardware(
        weights_in=("sram", "flash")[seed % 2], flash_bytes=(32256, 3000)[seed // 2 % 2]
    )
    on_chip(tmp_path, graph, Herringbone("slots").plan(graph, hardware), hardware)


LOOPS = [*(f"{lanes} lanes" for lanes in (4, 8, 9, 10, 11, 40)), "ends alike", "deep rows"]


@pytest.mark.parametrize("name", quick(0, LOOPS, ci=3))
def test_weights_in_sram_by_loops_where_flash_is_short(name: str, tmp_path: Path) -> None:
    """Each run of a window has code of its own only where there is room for it."""
    graph, sources = SHAPES[name]().graph(), []
    for flash_bytes in (32256, 3000):
        hardware = load_hardware(flash_bytes=flash_bytes)
        plan = Herringbone("slots").plan(graph, hardware)
        sources.append(generate(graph, plan, hardware, {})["model.c"])
    assert len(sources[1]) < len(sources[0])
    on_chip(tmp_path, graph, plan, hardware)


@pytest.mark.parametrize(
    ("arriving", "weights_in"),
    quick(0, [(False, "flash"), (True, "sram"), (False, "sram"), (True, "flash")], ci=2),
)
def test_programs_are_no_larger_than_estimated(
    arriving: bool, weights_in: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written out, so that flash is used up, depends on that."""
    known = list[Windows]()
    parts = code.parts
    monkeypatch.setattr(code, "parts", lambda windows: known.append(windows) or parts(windows))
    graph, hardware = mnist().graph(), load_hardware(weights_in=weights_in)
    plan = Herringbone("slots", convolve_arriving=arriving).plan(graph, hardware)
    size, _ = on_chip(tmp_path, graph, plan, hardware, 2)
    estimated = room.estimated_bytes(known[0])
    assert size.flash_bytes <= estimated <= hardware.flash_bytes
    assert estimated < 1.1 * size.flash_bytes


def test_torn_pixels_are_tested(tmp_path: Path) -> None:
    graph = SHAPES["torn pixels"]().graph()
    plan = Herringbone("slots").plan(graph, load_hardware())
    code = generate(graph, plan, load_hardware(), {})["model.c"]
    assert "%[gather]+" in code and ".Ltorn" in code
    large = generate(graph, plan, load_hardware(sram_bytes=16384), {})["model.c"]
    assert ".Ltorn" in large and "%[gather]+" not in large  # its flag would be part of an address


@pytest.mark.parametrize(
    ("name", "chain"),
    {
        "many bytes": lambda: Chain((5, 5, 3)).conv("a", 17, dtype="uint8").dense("d", 13),
        "padding": lambda: Chain((5, 5, 2)).conv("a", 3, padding=(1, 1, 1, 1)).dense("d", 4),
        "padded maximum": lambda: (
            Chain((5, 5, 2))
            .maximum("a", kernel=(3, 3), stride=(2, 2), padding=(1, 1, 1, 1))
            .dense("d", 4)
        ),
        "bytes": lambda: Chain((5, 5, 2), "uint8").conv("a", 3, dtype="uint8").dense("d", 4),
    }.items(),
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_portable_c_where_there_is_no_assembly(name: str, chain: object, tmp_path: Path) -> None:
    graph = chain().graph()  # type: ignore[operator]
    hardware = load_hardware()
    on_chip(tmp_path, graph, Ordinary("slots").plan(graph, hardware), hardware, 2)
    assert not uses_assembly(tmp_path, "a")


def test_two_kernels_share_weights_that_only_one_reads(tmp_path: Path) -> None:
    """The first three pixels by weights as code; the last one from another view, by the array."""
    graph = Chain((6, 3, 2)).conv("a", 4).dense("d", 2).graph()
    hardware = load_hardware(weights_in="flash")
    plan = Ordinary("slots").plan(graph, hardware)
    image = plan.buffer["image"]
    order = np.random.default_rng(0).permutation(18)
    base = 2 * (max(int(b.addresses(b.box).max()) for b in plan.buffers if b.memory == "sram") + 8)
    cells = tuple(int(base + 2 * pixel + c) for pixel in order for c in range(2))
    torn = dataclasses.replace(image, name="shuffled", map=Table(cells))
    steps: list[Step] = []
    for step in plan.tracks[0].steps:
        if isinstance(step, Compute) and step.op == "a":
            (kept,) = (s for s in step.ins if s.buffer == "image")
            rest = tuple(s for s in step.ins if s != kept)
            first = dataclasses.replace(step.out, size=(3, *step.out.size[1:]))
            last = dataclasses.replace(step.out, lo=(3, 0, 0), size=(1, *step.out.size[1:]))
            steps += [
                Compute("a", first, step.ins, step.unit),
                Move(whole(image), whole(torn)),
                Compute("a", last, (whole(torn), *rest), step.unit),
            ]
        else:
            steps.append(step)
    plan = dataclasses.replace(
        plan, buffers=(*plan.buffers, torn), tracks=(Track("cpu", tuple(steps)),)
    )
    verify(roomy(plan), graph)
    on_chip(tmp_path, graph, plan, hardware)
    code = (tmp_path / "model.c").read_text()
    assert uses_assembly(tmp_path, "a") and uses_assembly(tmp_path, "a__2")
    arrays, assembly = code.index("nn_weights_a["), code.index("void run_a_pixel(")
    assert arrays < assembly and "ldi r30, lo8(%[weights])" in code


def test_twin_on_the_chip(tmp_path: Path) -> None:
    """-DNN_PORTABLE compiles the twin where assembly is the default: 16-bit int, same outputs."""
    graph = Chain((8, 8, 1), "uint8").average("p").conv("a", 5).dense("d", 3).graph()
    hardware = load_hardware()
    tools = dataclasses.replace(
        hardware.toolchain, flags=(*hardware.toolchain.flags, "-DNN_PORTABLE")
    )
    plan = Herringbone("slots").plan(graph, hardware)
    twin = dataclasses.replace(hardware, toolchain=tools)
    slow = on_chip(tmp_path / "twin", graph, plan, twin)[1]
    fast = on_chip(tmp_path / "assembly", graph, plan, hardware)[1]
    assert slow.compute_cycles.min() > 2 * fast.compute_cycles.max()


@pytest.mark.parametrize("right_shift", quick(1, [1, 9, 4, 6], ci=1))
def test_a_zero_point(right_shift: int, tmp_path: Path) -> None:
    """Signed results, as residual units add them up: halves are rounded to even on both sides."""
    chain = Chain((5, 5, 2)).conv("signed", 5)
    chain.tensors["signed"] = dataclasses.replace(chain.tensors["signed"], zero_point=8)
    shifted = dataclasses.replace(chain.operators.pop(), requant=PowerOfTwo(1, right_shift))
    chain.operators.append(shifted)
    graph = chain.dense("logits", 3).graph()
    on_chip(tmp_path, graph, Ordinary().plan(graph, load_hardware()), load_hardware())
    assert uses_assembly(tmp_path, "signed")
