"""Kernels that write some pixels at a time: those that gather the windows of some before they write
these, in place, from tables, peels and scattered pixels; and Winograd's minimal filtering, where no
layer could leave the range in which it is exact. Their portable twin, with ASan and UBSan, gives
the graph's outputs."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.errors import PlanError, ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.requant import PowerOfTwo
from pipeline.kernels import Form, named
from pipeline.kernels.cortex_m.gathered import GatheredConvolution
from pipeline.kernels.cortex_m.winograd import SPANS, exact, outputs_of_a_side
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Buffer, Compute, Plan, Table
from pipeline.schedules import draft
from pipeline.schedules.traversed import Traversed
from pipeline.search.chains import slots
from pipeline.strategies.base import LAYOUTS, Layout, Strategy
from pipeline.strategies.in_place import Herringbone, Replace, SingleTranspose
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.cortex_m.layers import clipped_at_zero, requantized
from tests.codegen.cortex_m.support import core, kernels
from tests.codegen.support import checked, frames, on_board, roomy
from tests.graphs import Chained, Net
from tests.kernels.layers import plan_by
from tests.targets.cortex_m import board_named, needs_arm
from tests.tiers import quick

BOARDS = ("nucleo_f446re", "nucleo_f767zi", "nucleo_u575zi")
STRATEGIES = (Herringbone, Replace, SingleTranspose)
GATHERED = {f"cortex_m.gathered_{word}" for word in ("conv2d", "depthwise")}


def chain(seed: int) -> Graph:
    """Channels that four divides or not; windows with padding, strides and dilation."""
    rng = np.random.default_rng(seed)
    sides = rng.integers(9, 13, 2)
    net = Net((int(sides[0]), int(sides[1]), int(rng.integers(1, 6))), rng, name="chain")
    valid = (0, 0, 0, 0)
    net.conv(int(rng.integers(5, 9)), (3, 3), padding=valid if seed % 2 else (1, 1, 1, 1))
    net.depthwise((3, 3), **({"stride": (2, 1)} if seed % 3 == 0 else {}))
    if seed % 4 == 1:
        net.depthwise((5, 6), padding=(2, 2, 2, 3))
    net.conv(int(rng.integers(8, 14)), (1, 1))
    edges = (1, 0, 0, 1) if seed % 3 == 2 else valid
    if seed % 2:
        net.maximum((2, 2), stride=(1, 1), padding=edges)
    else:
        net.mean((2, 2), stride=(2, 1), padding=edges)
    net.conv(int(rng.integers(14, 19)), (2, 3), padding=valid, dilation=(1, 1 + seed % 2))
    return Chained(net).dense(int(rng.integers(6, 12))).dense(5).graph()


def blocks(seed: int) -> Graph:
    """Residual blocks: rows of 5 to 11 pixels one by one, so that the last few are fewer than the
    others; windows of which some taps, or columns, never lie inside."""
    rng = np.random.default_rng(seed)
    height, width, channels = (int(rng.integers(*ends)) for ends in ((5, 8), (5, 12), (4, 11)))
    net = Net((height, width, 2), rng, name="blocks")
    net.conv(channels, (3, 3))
    for apart in (1, int(rng.integers(2, 13))):
        start = net.last
        for _ in range(2):
            net.conv(channels, (3, 3), padding=(apart,) * 4, dilation=(apart, apart))
        net.plus(*((net.last, start) if seed % 2 else (start, net.last)))
    net.conv(6, (3, 3), padding=(width,) * 4, dilation=(width, width))
    return Chained(net).dense(5).graph()


def upsampled(seed: int) -> Graph:
    rng = np.random.default_rng(seed)
    width, channels = (int(n) for n in rng.integers((2, 4), (7, 11)))
    net = Net((4, width, 2), rng, name="upsampled")
    net.conv(channels)
    net.rearrange((8, 2 * width, channels), repeats=(2, 2, 1))
    for more in (1, 0, -1):
        net.conv(channels + more, (3, 3 + 2 * (seed % 2)))
    return Chained(net).rearrange((16, 4 * width, channels - 1), repeats=(2, 2, 1)).conv(3).graph()


def check(graph: Graph, plan: Plan, seed: int, folder: Path) -> None:
    checked(folder, graph, plan, core(), frames(graph, 3, seed), interpreted=True)


def cases() -> list[tuple[type[Strategy], Layout, int]]:
    first = [(Herringbone, layout, 0) for layout in LAYOUTS]
    every = [(kind, layout, n) for n in range(12) for kind in STRATEGIES for layout in LAYOUTS]
    return [*first, *(case for case in every if case not in first)]


@pytest.mark.parametrize(("kind", "layout", "seed"), quick(0, cases(), ci=2))
def test_chains(kind: type[Strategy], layout: Layout, seed: int, tmp_path: Path) -> None:
    graph = chain(seed)
    plan = kind(layout=layout).plan(graph, core())
    check(graph, plan, seed, tmp_path)
    used = set(kernels(plan).values())
    assert "cortex_m.gathered_conv2d" in used and not any(name.startswith("int8.") for name in used)


@pytest.mark.parametrize("seed", quick(1, range(20), ci=1))
@pytest.mark.parametrize("strategy", [Herringbone(), Joint()], ids=["pixels", "rows"])
def test_blocks(strategy: Strategy, seed: int, tmp_path: Path) -> None:
    """Pixels in place, and rows over dying ones, some of whose pixels are made but not written."""
    graph = (upsampled if strategy == Joint() else blocks)(seed)
    plan = strategy.plan(graph, core())
    check(graph, plan, seed, tmp_path)
    used = set(kernels(plan).values())
    assert strategy == Joint() or {"cortex_m.elements", "cortex_m.gathered_conv2d"} <= used
    assert not {"int8.add", "int8.conv2d"} & used


def test_pixels_that_are_left_have_code_of_their_own_where_it_pays() -> None:
    kernel = GatheredConvolution()
    found = dict[int, tuple[int, int]]()
    for width in (4, 5, 6, 7, 9, 10, 130):
        net = Net((1, width, 8), np.random.default_rng(width), name="row")
        net.conv(8, (1, 1))
        form = Form.whole(net.operators[0], net.graph())
        found[width] = kernel.together(form), kernel.tail(form)
        assert sum(n * pixels for pixels, n in kernel.blocks(form)) >= width
    # 5 = 3 + 2, 6 = 3 + 3, 7 = 4 + 3, 10 = 4 + 4 + 2; of 130 the last two are not worth it
    assert found == {4: (4, 4), 5: (3, 2), 6: (3, 3), 7: (4, 3), 9: (3, 3), 10: (4, 2),
                     130: (4, 4)}  # fmt: skip


def test_taps_that_are_never_inside_take_nothing() -> None:
    net = Net((20, 10, 8), np.random.default_rng(0), name="far")
    net.conv(8, (3, 3), padding=(16,) * 4, dilation=(16, 16))
    form = Form.whole(net.operators[0], net.graph())
    window = GatheredConvolution().window(form)
    assert (window.rows, window.columns, window.size) == (range(3), range(1, 2), 3 * 8)


def scattered(buffers: Iterable[Buffer], seed: int) -> Iterable[Buffer]:
    """Channels of some pixels the other way round: what reads or writes these pixels stays so."""
    rng = np.random.default_rng(seed)
    for buffer in buffers:
        if not isinstance(buffer.map, Table) or len(buffer.shape) != 3:
            yield buffer
            continue
        cells = np.array(buffer.addresses(buffer.box))
        some = rng.random(buffer.shape[:2]) < 0.3 / (1 + seed // 20)
        cells[some] = cells[some][:, ::-1]
        yield replace(buffer, map=Table(tuple(cells.reshape(-1).tolist())))


def swapped(found: Traversed, seed: int) -> Traversed:
    """``found`` with scattered pixels, in its runs, too."""
    places = dict(zip(found.buffers, scattered(found.buffers, seed), strict=True))
    runs = (
        replace(r, sources=tuple(places[each] for each in r.sources), target=places[r.target])
        for r in found.runs
    )
    return replace(found, buffers=tuple(places.values()), runs=tuple(runs))


@pytest.mark.parametrize(
    ("network", "seed"), quick(0, [(kind, n) for n in range(20) for kind in (chain, blocks)], ci=2)
)
def test_scattered_pixels(
    network: Callable[[int], Graph], seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer where something would overwrite what is still read."""
    arrange, graph = slots.arrange, network(seed)
    for number in range(seed, 800, 20):
        monkeypatch.setattr(slots, "arrange", lambda *args, n=number: swapped(arrange(*args), n))
        plan = Herringbone().plan(graph, core())
        with suppress(PlanError):
            verify(roomy(plan), graph)
            break
    assert set(kernels(plan).values()) & GATHERED
    check(graph, plan, seed, tmp_path)


def test_pixels_wait_where_a_row_begins_within_what_it_is_made_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = Net((8, 11, 6), np.random.default_rng(0))
    net.conv(6, (3, 3))
    net.conv(4, (1, 2), stride=(1, 2), padding=(0, 0, 0, 0))
    net.conv(4, (3, 3))
    graph, offers = net.graph(), draft.offers
    monkeypatch.setattr(
        draft, "offers", lambda *asked: sorted(offers(*asked), key=lambda k: k.name not in GATHERED)
    )
    hardware = replace(core(), streams_input=True)
    plan = Joint().plan(graph, hardware)
    steps = [step for step in plan.tracks[0].steps if isinstance(step, Compute) and step.delay]
    assert GATHERED & {step.kernel for step in steps}
    checked(tmp_path, graph, plan, hardware, frames(graph, 3, 0), interpreted=True)


def test_others_are_left_to_other_kernels() -> None:
    """Whole rows that lie over nothing; cores without DSP; where there is no room for windows."""
    for strategy, hardware in (
        (Ordinary(), core()),
        (Herringbone(), core("cortex-m0plus")),
        (Herringbone(), core(sram_bytes=900)),
    ):
        assert not GATHERED & set(kernels(strategy.plan(chain(4), hardware)).values())


KERNELS = ("winograd", *(f"winograd_live{span}" for span in SPANS))


def layer(rng: np.random.Generator) -> Graph:
    """Draw sizes from 2 x 2 outputs on, channels that four and two do not divide, any padding."""
    height, width = (int(n) for n in rng.integers(2, 15, 2))
    depth, channels = int(rng.integers(1, 21)), int(rng.integers(2, 8))
    padding = (1, 1, 1, 1)
    if rng.random() < 0.4 and min(height, width) > 3:
        padding = tuple(int(n) for n in rng.integers(0, 2, 4))  # type: ignore[assignment]
    net = Net((height, width, depth), rng, "uint8" if rng.random() < 0.25 else "int8", "layer")
    net.conv(channels, (3, 3), padding=padding, requant=requantized(rng, channels, 9 * depth))
    clipped_at_zero(net)
    return net.graph()


ENDS = ((127, 78), (-128, 78), (0, 226))
"""Weights that are all alike, or, 0, the ends in turns along all axes; and the greatest multiple of
two channels with which these are in the range of F(4 x 4, 3 x 3)."""


def extreme(weight: int, depth: int, kind: str = "int8") -> Graph:
    """Build a layer of weights at an end of what bytes hold, see ``ENDS``."""
    net = Net((6, 8, depth), np.random.default_rng(depth), kind, "layer")
    net.conv(2, (3, 3))
    op = net.operators[-1]
    assert isinstance(op, Conv2d)
    weights = net.constants[op.parameters[0]]
    turns = np.where(np.indices(weights.shape).sum(0) % 2, 127, -128)
    weights[:] = weight or turns
    return net.graph()


def inputs(graph: Graph, rng: np.random.Generator) -> np.ndarray:
    """At random, and as low and as high as an input can be, all of it or pixel by pixel."""
    tensor = graph.tensors[graph.input]
    low, high = tensor.dtype.minimum, tensor.dtype.maximum
    ends = rng.choice([low, high], tensor.shape)
    some = rng.integers(low, high + 1, tensor.shape)
    return np.stack([some, ends, np.full(tensor.shape, low), np.full(tensor.shape, high)])


def drawn(seed: int) -> Graph:
    """A layer that has such a kernel."""
    for number in range(seed * 100, seed * 100 + 100):
        graph = layer(np.random.default_rng(number))
        if named("cortex_m.winograd", form_of(graph), core()).accepts(form_of(graph)):
            return graph
    raise AssertionError("none of 100")


def form_of(graph: Graph) -> Form:
    return Form.whole(graph.operators[-1], graph)


@pytest.mark.parametrize(("weight", "depth"), ENDS)
def test_the_range_is_the_sums(weight: int, depth: int) -> None:
    """Scaled sums of the extremes take 31 bits and a sign, and two channels more do not."""
    inside, outside = extreme(weight, depth), extreme(weight, depth + 2)
    assert exact(inside.operators[-1], inside, 4)
    assert not exact(outside.operators[-1], outside, 4)
    assert exact(outside.operators[-1], outside, 2)


def test_other_layers_are_left_to_other_kernels() -> None:
    def why(graph: Graph, **part: object) -> str:
        form = replace(form_of(graph), **part)  # type: ignore[arg-type]
        return named("cortex_m.winograd", form, core()).why_not(form)

    def conv(shape: tuple[int, int, int], *kernel: object, **options: object) -> Graph:
        net = Chained(Net(shape, np.random.default_rng(0), name="layer"))
        return net.conv(4, *kernel, **options).graph()

    one = conv((8, 8, 4))
    assert not why(one)
    assert "3x3 convolutions of stride 1" in why(conv((8, 8, 4), stride=(2, 1)))
    for graph in (
        conv((8, 8, 4), (1, 1)), conv((8, 8, 4), dilation=(2, 2)), conv((1, 8, 4)),
        conv((8, 8, 4), padding=(2, 1, 1, 1)), conv((8, 8, 4), requant=PowerOfTwo(right_shift=8)),
    ):  # fmt: skip
        assert why(graph)
    assert why(one, partial=True) and why(one, overlaps=frozenset({"image"}))
    some = replace(form_of(one).parts["conv0"], extents=(4, 8, 4))
    assert why(one, parts={**form_of(one).parts, "conv0": some})
    far = conv((4, 4, 9000))
    assert outputs_of_a_side(far.operators[-1], far) == 0 and why(far)


def test_less_scratch_is_refused() -> None:
    graph = drawn(0)
    for word in KERNELS:
        plan = plan_by(f"cortex_m.{word}", graph, core())
        (beside,) = (each for each in plan.buffers if each.name == "beside")
        less = replace(beside, shape=(beside.shape[0] - 1,))
        short = replace(plan, buffers=(*(b for b in plan.buffers if b is not beside), less))
        with pytest.raises(ThimbleError, match=rf"cortex_m\.{word} needs \d+ B of scratch"):
            generate(graph, short, core(), {})


def check_one(graph: Graph, seed: int, folder: Path, board: str = "") -> None:
    """By the portable twin, its scratch the end of the arena, which is watched; or on a board."""
    given = inputs(graph, np.random.default_rng(seed))
    hardware = board_named(board) if board else core()
    plan = plan_by(f"cortex_m.{KERNELS[seed % len(KERNELS)]}", graph, hardware)
    if board:
        on_board(folder / f"{seed}", graph, hardware, plan, given)
    else:
        checked(folder / f"{seed}", graph, plan, hardware, given)


EACH_NIGHT = [
    *((range(n, n + 50), "") for n in range(0, 200, 50)),
    *((range(300, 330), board) for board in BOARDS),
]


@needs_arm
@pytest.mark.parametrize(("seeds", "board"), quick(0, [(range(1, 2), ""), *EACH_NIGHT], ci=1))
def test_random_winograd_layers(seeds: range, board: str, tmp_path: Path) -> None:
    for seed in seeds:
        check_one(drawn(seed), seed, tmp_path, board)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(ENDS)))
def test_extremes(number: int, tmp_path: Path) -> None:
    """Inside of the range of F(4 x 4, 3 x 3), and just outside, where it is F(2 x 2, 3 x 3)."""
    weight, depth = ENDS[number]
    for seed, more in enumerate((0, 2)):
        for kind in ("int8", "uint8"):
            graph = extreme(weight, depth + more, kind)
            assert outputs_of_a_side(graph.operators[-1], graph) == (2 if more else 4)
            check_one(graph, seed, tmp_path / kind)


@needs_arm
@pytest.mark.ci
@pytest.mark.parametrize("number", [0, 2])
def test_extremes_on_a_cortex_m4(number: int, tmp_path: Path) -> None:
    """The second has a loop in its innermost loop, and steps behind it."""
    graph = extreme(*ENDS[number])
    assert outputs_of_a_side(graph.operators[-1], graph) == 4
    check_one(graph, number, tmp_path, "nucleo_f446re")
