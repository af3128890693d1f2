"""Networks on simulated cores, by each set of kernels: the graph's or the interpreter's outputs."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.calibrate import calibrated
from pipeline.plan.interpret import interpret
from pipeline.plan.vocabulary import Plan
from pipeline.strategies.base import LAYOUTS
from pipeline.strategies.in_place import Herringbone
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from tests.codegen.cortex_m import layers as by_row
from tests.codegen.cortex_m.support import by_rows, coarser, kernels
from tests.codegen.int8.test_plans import chain
from tests.codegen.support import frames, on_board
from tests.graphs import Chained, Net, random_graph
from tests.strategies.chains import IN_PLACE
from tests.strategies.nets import entrance, fig1_block, residual
from tests.strategies.test_chains import mobile
from tests.targets.cortex_m import board_named, needs_arm
from tests.tiers import quick

pytestmark = needs_arm
M0PLUS, M4, M7, M33 = "nucleo_g0b1re", "nucleo_f446re", "nucleo_f767zi", "nucleo_u575zi"
PlanOf = Callable[[Graph, Hardware], Plan]


def network(seed: int, dtype: str = "int8") -> Graph:
    """All kinds of layers, of sizes that nothing divides."""
    net = Net((11, 9, 3), np.random.default_rng(seed), dtype, name="layers")
    net.conv(13, (3, 3), stride=(1, 2))
    net.depthwise((3, 3))
    start = net.conv(17, (1, 1))
    net.plus(net.conv(17, (3, 3), dilation=(2, 1), padding=(2, 2, 1, 1)), start)
    net.maximum((3, 2), stride=(1, 1), padding=(1, 1, 1, 0))
    net.depthwise((5, 3), stride=(2, 2), padding=(1, 2, 1, 1))
    net.mean((2, 2), stride=(1, 1), padding=(1, 0, 0, 1))
    return Chained(net).conv(10, (2, 3), stride=(2, 1)).dense(40).dense(11).graph()


def far_apart() -> Graph:
    """Channels and long rows that need more than one instruction to be reached."""
    net = Chained(Net((3, 70, 2), np.random.default_rng(5), name="wide")).conv(300, (1, 1))
    return net.depthwise((3, 3)).depthwise((3, 3), stride=(1, 2)).conv(40, (1, 1)).graph()


def by_channels(bits: Literal[8, 16] = 8) -> PlanOf:
    """Sums of few bits of one channel after the other."""

    def plan_of(graph: Graph, hardware: Hardware) -> Plan:
        plan = Partial(accumulator_bits=bits, channels=1).plan(graph, hardware)
        plan = calibrated(plan, graph, frames(graph, 2, 1))
        return coarser(plan, 5) if bits == 16 else plan

    return plan_of


@dataclass(frozen=True)
class Case:
    graph: Callable[[], Graph]
    board: str = M4
    plan: PlanOf = Ordinary().plan
    uses: str = "cortex_m."
    """Kernels, or how one of them begins."""


WORDS = ("added", "conv2d", "depthwise", "image", "pointwise")
CASES = {
    "an M4": Case(lambda: network(0)),
    "an M0+": Case(
        lambda: network(0), M0PLUS, uses="thumb.conv2d thumb.depthwise thumb.dense"
    ),
    "channel by channel on an M4": Case(lambda: residual(0), M4, by_channels()),
    # of few channels the innermost loop is straight; of many strips values lie on the stack
    "channel by channel without a loop": Case(lambda: residual(25), M4, by_channels()),
    "in place, slots": Case(
        lambda: chain(3), M4, Herringbone("slots").plan, "cortex_m.gathered_conv2d"
    ),
    "rows": Case(lambda: by_row.network(0), M4, by_rows, "cortex_m.row_depthwise"),
    "rows of a residual": Case(lambda: by_row.image_network(0), M4, by_rows, "cortex_m.row_conv2d"),
    # those of CI
    "an M7": Case(lambda: network(1), M7),
    "an M33": Case(lambda: network(2), M33),
    "an M0+, without signs": Case(lambda: network(1, "uint8"), M0PLUS, uses="thumb."),
    "an M0+, far apart": Case(far_apart, M0PLUS, uses="thumb."),
    "channel by channel on an M7": Case(lambda: entrance(1), M7, by_channels()),
    "channel by channel on an M33": Case(lambda: residual(2), M33, by_channels()),
    "channel by channel with many values": Case(lambda: entrance(11), M4, by_channels()),
    "sums of 16 bits": Case(fig1_block, M4, by_channels(16)),
    **{
        f"in place, {layout}": Case(lambda: chain(3), M4, Herringbone(layout).plan)
        for layout in LAYOUTS if layout != "slots"
    },
    "branches in place": Case(mobile, M4, IN_PLACE[-1]().plan),
    "rows on an M7": Case(lambda: by_row.network(0), M7, by_rows),
    "rows on an M33": Case(lambda: by_row.network(0), M33, by_rows),
    # those of each night
    **{
        f"rows on {board}, {seed}": Case(lambda s=seed, m=make: m(s), board, by_rows)
        for make in (by_row.network, by_row.image_network) for board in (M4, M7, M33)
        for seed in range(1, 4)
    },
    **{
        f"{make.__name__} channel by channel, {seed}": Case(
            lambda s=seed, m=make: m(s), M4, by_channels()
        )
        for make in (residual, entrance) for seed in range(20)
    },
    **{f"branches in place, {each.name}": Case(mobile, M4, each().plan) for each in IN_PLACE[:-1]},
    **{f"an M0+, {seed}": Case(lambda s=seed: network(s), M0PLUS, uses="") for seed in range(2, 9)},
    **{f"random, {n}": Case(lambda n=n: random_graph(n), uses="") for n in range(5000, 5150)},
}  # fmt: skip


@pytest.mark.parametrize("name", quick(4, CASES, ci=15))
def test_on_a_core(name: str, tmp_path: Path) -> None:
    case, graph = CASES[name], CASES[name].graph()
    hardware, given = board_named(case.board), frames(graph, 4)
    plan = case.plan(graph, hardware)
    given[-1] = graph.tensors[graph.input].zero_point  # a dense layer's list of inputs is empty
    expected = None
    if any(buffer.step > 1 for buffer in plan.buffers):
        expected = np.stack([interpret(plan, graph, frame).output for frame in given])
    on_board(tmp_path, graph, hardware, plan, given, expected=expected)
    used = kernels(plan).values()
    assert all(any(each.startswith(word) for each in used) for word in case.uses.split())


@pytest.mark.parametrize("level", quick(1, ["-O0", "-Os", "-Og", "-O3"], ci=1))
def test_other_options_of_the_compiler(level: str, tmp_path: Path) -> None:
    """Whoever copies the C chooses them; without optimization there are too few registers for the
    assembly, and the portable twin is compiled."""
    hardware = board_named(M4)
    tool = hardware.toolchain
    flags = [flag for flag in tool.flags if not flag.startswith("-O")]
    for graph, plan_of in ((network(0), Ordinary().plan), (residual(0), by_channels())):
        for name, text in generate(graph, plan_of(graph, hardware), hardware, {}).items():
            (tmp_path / name).write_text(text)
        command = [tool.compiler, *flags, level, "-c", "model.c", "-o", "model.o"]
        subprocess.run(command, cwd=tmp_path, check=True)
        command = [tool.objdump, "-d", "model.o"]
        done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
        assert ("smlad" in done.stdout) == (level != "-O0")
