"""State between calls: imported, planned, proved over several calls, and run as C in sequence."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline import passes
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.state import State
from pipeline.importers.tflite import TFLite
from pipeline.plan.cost import cost
from pipeline.plan.fit import roomy
from pipeline.plan.interpret import sequence
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Move, Plan
from pipeline.report.memory_map.picture import kind
from pipeline.strategies.auto import Auto
from pipeline.strategies.in_place import Herringbone
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets import builds, stepped
from pipeline.targets.host import infer
from pipeline.targets.predictor import Predictor
from tests.boards import load_hardware
from tests.comparing import equal
from tests.graphs import Net
from tests.importers.tflite_cells import lstm
from tests.importers.tflite_reference import frames, imported, reference
from tests.importers.tflite_variables import variable
from tests.plan.agreement import refuse
from tests.public_models import folder
from tests.targets.cortex_m import built, generated, outputs, simulated
from tests.tiers import quick

L4, M0 = (load_hardware(name) for name in ("nucleo_l4r5zi", "nucleo_g0b1re"))
STRATEGIES = (Ordinary(), Ordinary(objective="latency"), Joint(), Auto())
PASSES = ("fold_reshape", "fold_mixed")


def recurrent(seed: int = 0) -> Graph:
    """h' = conv(h) + x; y = (h' + h) + x of the call before: h is read after h' is made."""
    net = Net((4, 4, 4), np.random.default_rng(seed))
    held, late = (net.tensor(name, (4, 4, 4)) for name in ("held", "late"))
    made = net.plus(net.conv(4, source=held), net.image)
    last, copied = net.plus(net.plus(made, held), late), net.lookup(net.image)
    states = State("held", made), State("late", copied)
    like = {each.read: replace(net.tensors[each.made], name=each.read) for each in states}
    initial = {name: net.rng.integers(-128, 128, (4, 4, 4)) for name in like}
    tensors = net.tensors | like
    ends = (net.image,), (last,)
    kept = {"states": states, "initial": initial}
    return Graph("net", tensors, tuple(net.operators), net.constants, *ends, **kept)


def in_sequence(plan: Plan, graph: Graph, given: np.ndarray) -> None:
    """The plan is proved, and gives what the graph gives, interpreted and as C."""
    verify(plan, graph)
    wanted = graph.evaluate(given)
    equal(np.stack([*sequence(plan, graph, given[:6])]), wanted[:6], strategy=plan.strategy)
    stored = given.astype(graph.tensors[graph.input].dtype.stored)
    made = Predictor.build(graph, plan, L4)
    for _ in range(2):  # each sequence begins anew
        equal(made.predict(stored), wanted, strategy=plan.strategy)


@pytest.mark.parametrize("strategy", quick(1, STRATEGIES, ci=3))
def test_what_is_kept_is_what_the_next_call_finds(strategy: Ordinary, tmp_path: Path) -> None:
    ring = passes.applied(imported(variable(np.random.default_rng(1)), tmp_path), PASSES)
    cells = imported(lstm(np.random.default_rng(2), 1), tmp_path, step=True)
    for graph in (ring, recurrent(), cells):
        given = frames(graph, 9)
        assert (graph.evaluate(given)[2:] != graph.evaluate(given[2:])).any()
        in_sequence(strategy.plan(graph, L4), graph, given)


def test_files_equal_tflite_micro_and_rings_are_neither_copied_nor_doubled(tmp_path: Path) -> None:
    for seed in range(8):
        content = variable(np.random.default_rng(seed))
        graph = imported(content, tmp_path)
        given = frames(graph, 12, seed)
        equal(graph.evaluate(given).reshape(12, -1), reference(content, given, graph))
    plan = Ordinary().plan(graph := passes.applied(graph, PASSES), L4)
    assert not any(isinstance(step, Move) for step in plan.tracks[0].steps)
    assert [kind(plan.buffer[name], graph) for name in plan.states] == ["state"]
    graph.save(tmp_path)
    loaded = Graph.load(tmp_path)
    assert loaded.hash == graph.hash and (loaded.evaluate(given) == graph.evaluate(given)).all()
    assert stepped.check(graph, plan, L4, given[:3], "host") > 0


def test_cells_of_files_keep_their_variables_from_step_to_step(tmp_path: Path) -> None:
    """Steps of a sequence give what the sequence gives, and what tflite-micro does."""
    for seed in range(12):
        kind = "INT16" if seed % 3 == 2 else "INT8"
        content = lstm(np.random.default_rng(seed), 1, kind)
        graph = imported(content, tmp_path, step=True)
        whole = imported(lstm(np.random.default_rng(seed), 12, kind), tmp_path)
        given = frames(graph, 12, seed)
        found = graph.evaluate(given).reshape(12, -1)
        equal(found, reference(content, given, graph))
        rows = given.reshape(1, *whole.tensors[whole.input].shape)
        equal(found, whole.evaluate(rows).reshape(12, -1))


@pytest.mark.parametrize(
    ("make", "change", "said"),
    [
        (lstm, {"peephole": 9}, "a peephole"),
        (lstm, {"projection": 16}, "a projection"),
        (lstm, {"norm": 20}, "layer normalization"),
        (lstm, {"steps": 3}, "this one has 3"),
        (lstm, {"steps": 1, "bias": 12}, "weights and biases of"),
        (variable, {"reads": False}, "assigned, and not read before"),
        (variable, {"assigned": 0}, "read, and never assigned"),
        (variable, {"assigned": 2}, "assigned twice"),
        (variable, {"rows": 1}, "shape, type and quantization have to agree"),
        (variable, {"begins": 1}, "begins with"),
    ],
)
def test_cells_and_variables_that_are_refused(
    make: Callable[..., bytes], change: dict[str, int], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ThimbleError, match=said):
        imported(make(np.random.default_rng(0), **change), tmp_path, step=True)


def test_a_plan_that_keeps_something_else_is_refused() -> None:
    graph = recurrent()
    plan = Ordinary().plan(graph, L4)
    refuse(replace(plan, states=plan.states[::-1]), graph, r"states are .* not the graph's")
    moved = {n: replace(plan.buffer[n], map=plan.buffer[n].map.moved(8)) for n in plan.states}
    elsewhere = roomy(replace(plan, buffers=(*(plan.buffer | moved).values(),)))
    refuse(elsewhere, graph, "does not lie where the next call finds held")
    steps = tuple(step for step in plan.tracks[0].steps if not isinstance(step, Move))
    without = replace(plan, tracks=(replace(plan.tracks[0], steps=steps),))
    refuse(without, graph, r"the plan's end needs 8-bit element of .* finds")


TRIED = Path(__file__).with_name("tried.c").read_text()


@pytest.mark.ci
def test_a_state_goes_on_after_a_sleep(tmp_path: Path) -> None:
    """Before each frame it is taken out, all begins anew within another one, and it is put back."""
    graph = recurrent()
    sources = generated(tmp_path, graph, L4, Ordinary().plan(graph, L4))
    main = (sources / "main.c").read_text()
    take, fed = "static inline void take(", "        feed(&byte, 1);"
    assert take in main and fed in main
    main = main.replace(take, f"#include <string.h>\n{TRIED}{take}")
    (sources / "main.c").write_text(main.replace(fed, f"        if (!at) tried(byte);\n{fed}"))
    size, given = builds.build(sources, tmp_path / "build", L4), frames(graph, 5)
    wanted = graph.evaluate(given)
    equal(outputs(graph, simulated(tmp_path, graph, L4, size, given)), wanted)
    native = infer(tmp_path / "build" / "host", given.astype(np.int8).view(np.uint8))
    equal(native.reshape(wanted.shape), wanted)


@pytest.mark.ci
def test_each_call_is_counted_by_itself(tmp_path: Path) -> None:
    graph = recurrent()
    size = built(tmp_path, graph, L4, Ordinary().plan(graph, L4))
    found = simulated(tmp_path, graph, L4, size, frames(graph, 5))
    counted = found.modelled_cycles
    assert counted is not None
    assert counted["instructions"] == pytest.approx(np.median(found.instructions), rel=0.05)


def test_strategies_of_one_input_say_so() -> None:
    with pytest.raises(ThimbleError, match="has 3 inputs and states"):
        Herringbone().plan(recurrent(), L4)


@pytest.mark.ci
@pytest.mark.parametrize(("name", "most"), [("okay_nabu", 3_900), ("vad", 1_500)])
def test_wake_words(name: str, most: int) -> None:
    path = folder("wake_words") / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    graph = passes.applied(TFLite(path=str(path)).graph(), PASSES)
    given = frames(graph, 100)
    equal(graph.evaluate(given).reshape(100, -1), reference(path.read_bytes(), given, graph))
    for board in (M0, L4):
        plan = Ordinary().plan(graph, board)
        assert cost(plan, graph, board).pmu_bytes <= most
    in_sequence(plan, graph, given)
