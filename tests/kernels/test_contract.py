"""Contract of every kernel, over random layers: who accepts a form is written for it, with the
scratch that it asked for and no less; what is declared and what is written are the same; an output
begins as far into a dying input as its kernel says, and no further; and where a row may be written
over another, against all that is read and written one by one."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.codegen.kernel_sets import writers
from pipeline.errors import PlanError, ThimbleError
from pipeline.graph.graph import Graph
from pipeline.kernels import Form, Kernel, choose, cortex_m, named, offers
from pipeline.kernels.by_row import AccessOrder, RowKernel
from pipeline.kernels.cortex_m.gathered import Gathered
from pipeline.kernels.int8 import LookedUpAdd, word
from pipeline.kernels.safe_offset import SafeOffset, pixel_offset
from pipeline.plan.cost import cost
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Compute, Loop, Plan, Step, packed
from pipeline.search.layouts import form_of_a_row
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.cortex_m.layers import KINDS, ROWS
from tests.codegen.cortex_m.support import core
from tests.codegen.support import checked, host
from tests.contracts.test_operators import EVERY, drawn
from tests.graphs import Net
from tests.kernels.layers import plan_by, step_of
from tests.strategies.proving import as_c
from tests.tiers import quick

FAST = cortex_m.kernels("cortex-m4")

Case = tuple[Graph, int, int]
"""A layer, and the channels that a pass makes or adds; 0: all at once."""


def cases(kind: str, seed: int) -> Iterator[Case]:
    graph = KINDS[kind](np.random.default_rng(seed))
    op = graph.operators[-1]
    yield graph, 0, 0
    if kind in ("dense", "sum", "gate") or op.name == "image":
        return
    channels = graph.tensors[op.output].shape[-1]
    for at_once in {1, 2, 4, max(1, channels // 2)} - {channels}:
        yield graph, at_once, 0
    depth = graph.tensors[op.inputs[0]].shape[-1]
    if op.weighted and op.mixes_channels(graph.tensors):
        for adding in {1, 2, depth}:
            yield graph, 0, adding


def offered(case: Case) -> list[tuple[Kernel, Form, Plan]]:
    graph, at_once, adding = case
    portable = f"int8.{word(graph.operators[-1])}"
    plan = plan_by(portable, graph, core(), at_once, adding)
    form = Form.of(step_of(plan), plan.buffer, graph)
    return [
        (kernel, form, plan_by(kernel.name, graph, core(), at_once, adding))
        for kernel in offers(form, core())
    ]


def test_what_is_declared_is_written() -> None:
    words = {word(drawn(kind, 0)[0][0]) for kind in EVERY}
    known = {*(f"int8.{each}" for each in words), LookedUpAdd().name}
    known |= {kernel.name for kernel in (*FAST, cortex_m.Ordered())}
    assert known == {name for name in writers() if name.startswith(("cortex_m.", "int8."))}


@pytest.mark.parametrize(
    ("kind", "seed"), quick(3, [(kind, n) for n in range(8) for kind in KINDS], ci=13)
)
def test_who_accepts_is_written_for_and_who_overlaps_takes_forms_that_do(
    kind: str, seed: int
) -> None:
    for case in cases(kind, seed):
        for kernel, form, plan in offered(case):
            verify(plan, case[0])
            files = generate(case[0], plan, core(), {})
            used = re.search(r"\*(restrict )?scratch\b", files["model.c"])
            assert used or not kernel.scratch_bytes(form), kernel.name
            assert kernel.cycles(form) > 0
            for name in form.op.inputs:
                if (safe := kernel.overlap(form, name)) is not None:
                    over = replace(form, overlaps=frozenset({name}))
                    assert kernel.accepts(over), kernel.name
                    assert safe.forwards <= 2 * form.graph.tensors[name].size


@pytest.mark.parametrize("kind", quick(("dense", "depthwise", "pool"), KINDS))
def test_who_does_not_accept_is_refused(kind: str) -> None:
    refused = set()
    for seed in range(2):
        for case in cases(kind, seed):
            _, form, plan = offered(case)[-1]
            for kernel in (each for each in FAST if not each.asked):
                if why := kernel.why_not(form):
                    step = step_of(plan)
                    changed = _with_step(plan, kernel.name)
                    with pytest.raises(ThimbleError, match=f"{step.op}: .*{kernel.name}") as error:
                        generate(case[0], changed, core(), {})
                    assert "\n" not in str(error.value) and why in str(error.value)
                    refused.add(kernel.name)
    assert len(refused) > 5


def _with_step(plan: Plan, kernel: str) -> Plan:
    """The same plan, its last step by another kernel."""

    def changed(step: Step) -> Step:
        if isinstance(step, Loop):
            return replace(step, body=tuple(map(changed, step.body)))
        return replace(step, kernel=kernel) if step is step_of(plan) else step

    track = plan.tracks[0]
    return replace(plan, tracks=(replace(track, steps=tuple(map(changed, track.steps))),))


SCRATCH = {
    "cortex_m.accumulate": ("conv2d", 0, 1),
    "cortex_m.conv2d": ("conv2d", 0, 0),
    "cortex_m.dense": ("dense", 0, 0),
    "cortex_m.depthwise": ("depthwise", 0, 0),
    "cortex_m.strips": ("pointwise", 1, 0),
}


def having(name: str) -> Iterator[tuple[Case, Plan]]:
    kind, at_once, adding = SCRATCH[name]
    for seed in range(40):
        case = KINDS[kind](np.random.default_rng(seed)), at_once, adding
        for kernel, _, plan in offered(case):
            if kernel.name == name:
                yield case, plan


def test_who_needs_scratch_is_listed() -> None:
    graph = KINDS["conv2d"](np.random.default_rng(0))
    form = Form.whole(graph.operators[-1], graph)
    others = [k for k in FAST if not (k.asked or ".row_" in k.name or isinstance(k, Gathered))]
    with_some = {k.name for k in others if type(k).scratch_bytes is not Kernel.scratch_bytes}
    assert with_some == set(SCRATCH)
    assert named("int8.conv2d", form, core()).scratch_bytes(form) == 0


@pytest.mark.parametrize("name", SCRATCH)
def test_less_scratch_is_refused_and_what_it_is_is_enough(name: str, tmp_path: Path) -> None:
    """It is the end of the arena, and what lies behind that is watched."""
    (graph, *_), plan = next(having(name))
    beside = plan.buffer["beside"]
    for less in (
        replace(beside, shape=(beside.shape[0] - 1,)),
        replace(beside, map=beside.map.moved(2)),  # a byte off a word
    ):
        buffers = tuple(less if b is beside else b for b in plan.buffers)
        with pytest.raises(ThimbleError, match=rf"{name} needs \d+ B of scratch at a word"):
            generate(graph, replace(plan, buffers=buffers), core(), {})
    as_c(tmp_path, graph, plan, core())


def test_dense_layers_over_their_inputs_are_fast(tmp_path: Path) -> None:
    """They widen what they read before they write."""
    net = Net((96,), np.random.default_rng(0), name="net")
    for outputs in (40, 120, 24, 7):
        net.dense(outputs)
    graph, board = net.graph(), core()
    plan = Joint().plan(graph, board)
    steps = [step for step in plan.tracks[0].steps if isinstance(step, Compute)]
    assert all(step.kernel == "cortex_m.dense" for step in steps)
    assert cost(plan, graph, board, verify(plan, graph)).pmu_bytes <= 120 + 40
    as_c(tmp_path, graph, plan, board)


def random_layer(seed: int) -> Graph:
    rng = np.random.default_rng(seed)
    net = Net(tuple(int(n) for n in rng.integers(3, 9, 3)), rng, name="net")
    height, width, channels = net.shape
    window = (int(rng.integers(1, min(4, height) + 1)), int(rng.integers(1, min(4, width) + 1)))
    stride = (int(rng.integers(1, 3)), int(rng.integers(1, 3)))
    padding = tuple(int(rng.integers(0, k)) for k in (window[0], window[0], window[1], window[1]))
    match rng.integers(4):
        case 0:
            net.conv(int(rng.integers(1, 9)), window, stride=stride, padding=padding)
        case 1:
            net.depthwise(window, stride=stride, padding=padding)
        case 2:
            net.maximum(window, stride=stride, padding=padding)
        case _:
            far = (2, 2) if height > 4 and width > 4 else (1, 1)
            net.conv(channels, (2, 2), dilation=far)
    return net.graph()


def overlapping(graph: Graph, safe: int) -> Plan:
    """The output begins ``safe`` nibbles after the input."""
    plan = Ordinary().plan(graph, host(1 << 20))
    op = graph.operators[0]
    (step,) = plan.tracks[0].steps
    assert isinstance(step, Compute)
    start = 2 * graph.tensors[graph.output].size
    places = {graph.input: start, graph.output: start + safe}
    buffers = tuple(
        replace(b, map=packed(b.shape, b.bits, places[b.tensor])) if b.tensor in places else b
        for b in plan.buffers
    )
    form = Form.whole(op, graph, [graph.input])
    kernel = choose(form, host())
    step = replace(step, unit=kernel.unit(form), kernel=kernel.name)
    track = replace(plan.tracks[0], steps=(step,))
    return replace(plan, buffers=buffers, tracks=(track,))


@pytest.mark.parametrize("seed", quick(20, range(60)))
def test_the_gap_is_the_largest(seed: int) -> None:
    graph = random_layer(seed)
    form = Form.whole(graph.operators[0], graph)
    found = choose(form, host()).overlap(form, graph.input)
    safe = found.forwards if found else -2 * graph.tensors[graph.output].size
    assert safe % 2 == 0
    verify(overlapping(graph, safe), graph)
    if safe < 2 * graph.tensors[graph.input].size:
        with pytest.raises(PlanError):
            verify(overlapping(graph, safe + 2), graph)


@pytest.mark.parametrize("seed", range(3))
def test_code_overwrites_its_input_so_far(seed: int, tmp_path: Path) -> None:
    graph = random_layer(seed)
    form = Form.whole(graph.operators[0], graph)
    safe = choose(form, host()).overlap(form, graph.input)
    assert safe is not None
    plan = overlapping(graph, safe.forwards)
    frames = np.random.default_rng(seed).integers(-128, 128, (4, *graph.tensors[graph.input].shape))
    checked(tmp_path, graph, plan, given=frames)


@pytest.mark.parametrize("delay", range(3))
@pytest.mark.parametrize("seed", quick(8, range(40), ci=8))
def test_a_row_begins_as_far_from_a_row_that_dies(seed: int, delay: int) -> None:
    """By brute force: in either order nothing is lost exactly where the safe says so."""
    graph = random_layer(seed)
    op = graph.operators[0]
    source, target = (graph.tensors[name] for name in (graph.input, graph.output))
    form = Form.whole(op, graph)
    made = replace(form.out, extents=(1, *target.shape[1:]), multiples=(True,) * 3)
    row = replace(form, parts={**form.parts, graph.output: made})
    under, over = (2 * tensor.shape[1] * tensor.shape[2] for tensor in (source, target))
    safe = pixel_offset(row, graph.input, delay) or SafeOffset(-over, under)
    window = op.terms(graph.tensors)[0].operands[0].windows[1]
    width, depth, channels = source.shape[1], source.shape[2], target.shape[2]
    reads = [
        {column for t in range(window.count)
         if 0 <= (column := x * window.stride + window.offset + t * window.dilation) < width}
        for x in range(target.shape[1])
    ]  # fmt: skip

    def kept(begin: int, order: list[int]) -> bool:
        """Check bytes; pixel n is written once the inputs of the next ``delay`` ones are read."""
        for number, x in enumerate(order):
            later = set[int]().union(*(reads[n] for n in order[number + 1 + delay :]))
            written = range(begin + x * channels, begin + (x + 1) * channels)
            if any(cell // depth in later for cell in written if 0 <= cell < width * depth):
                return False
        return True

    for begin in range(-over // 2 + 1, under // 2):
        order = list(range(target.shape[1]))
        assert kept(begin, order) or 2 * begin > safe.forwards
        assert kept(begin, order[::-1]) or 2 * begin < safe.backwards
        if 2 * begin <= safe.forwards:
            assert kept(begin, order)
        if 2 * begin >= safe.backwards:
            assert kept(begin, order[::-1])


def test_a_gap_leaves_out_intervals() -> None:
    safe = SafeOffset(-4, 6, (0,))
    assert safe.apart(20, 20) == ((-4, 0), (0, 6))
    assert safe.apart(20, 20, backwards=False) == ((-4, 0), (0, 20))
    assert SafeOffset(0, 0).apart(8, 8) == ()
    assert (
        safe.shared(20, 20) == 20
        and SafeOffset(-4).shared(20, 20) == 16
        and SafeOffset(-20).shared(20, 20) == 0
    )


def conflicts(turns: AccessOrder, apart: int) -> bool:
    """Check whether a byte that is written lies where one is still to be read."""
    return any(
        0 <= at + apart < len(turns.read) and turns.read[at + apart] > turn
        for at, turn in enumerate(turns.written)
    )


def allowed(turns: AccessOrder) -> set[int]:
    every = range(-len(turns.written), len(turns.read) + 1)
    return {apart for apart in every if not turns.forbids(apart)}


@pytest.mark.parametrize("seed", range(40))
def test_what_is_allowed_loses_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes, most = rng.integers(1, 12, 2), int(rng.integers(1, 6))
    turns = AccessOrder(rng.integers(-1, most, sizes[0]), rng.integers(0, most, sizes[1]))
    assert not any(conflicts(turns, apart) for apart in allowed(turns))
    latest, earliest, at, *_ = turns.safe
    assert not conflicts(turns, latest // 2) and not conflicts(turns, earliest // 2)
    assert (at == (0,)) == (not conflicts(turns, 0))


@pytest.mark.parametrize("read, written, latest, earliest, exactly", [
    ([0, 1, 2], [0, 1, 2], 0, 3, True),  # forwards
    ([1, 0], [1, 0], -2, 0, True),  # backwards
    ([0, 0, 1, 1], [0, 1], 1, 4, True),  # two for one
    ([0, 1, 0, 1], [0, 1, 0, 1], -2, 4, True),  # two channels in two blocks
    ([0, 0], [0, 0, 0], -1, 0, True),  # all is read first
    ([2, 2], [0, 1], -2, 2, False),
])  # fmt: skip
def test_by_hand(
    read: list[int], written: list[int], latest: int, earliest: int, exactly: bool
) -> None:
    turns = AccessOrder(np.array(read), np.array(written))
    assert turns.safe[:3] == (2 * latest, 2 * earliest, (0,) * exactly)


@pytest.mark.parametrize("kind", ROWS)
def test_what_kernels_say(kind: str) -> None:
    """Each byte that a layer reads or makes has its turn, and those of a part follow each other."""
    for seed in range(30):
        graph, pixels, name = ROWS[kind](np.random.default_rng(seed))
        op = graph.operators[1]
        if kind in ("added", "concat", "dense", "gate"):  # apart, or element by element
            return
        form = form_of_a_row(op, graph, pixels)
        kernel = named(name, form, core())
        assert isinstance(kernel, RowKernel)
        if not kernel.accepts(form):
            continue
        turns = kernel.access_order(form)
        assert len(turns.written) == np.prod(graph.tensors[op.output].shape[1:])
        assert len(turns.read) == np.prod(graph.tensors[op.inputs[0]].shape[1:])
        assert turns.written.min() <= 1 and turns.written.max() >= turns.read.max()
        over = replace(form, overlaps=frozenset({op.inputs[0]}))
        assert kernel.accepts(over) == (kernel.overlap(form, op.inputs[0]) is not None)
