"""target.check=layers: each element is compared as it is written, and the first wrong one named."""

from collections.abc import Callable

import pytest

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import Box, IntArray
from pipeline.plan.vocabulary import Buffer
from pipeline.strategies.base import Strategy
from pipeline.strategies.in_place import Herringbone
from pipeline.strategies.joint import Joint
from pipeline.strategies.swap import Swap
from pipeline.targets import stepped
from tests.boards import load_hardware
from tests.codegen.support import frames
from tests.graphs import Chained, Net, random_graph
from tests.strategies.chains import mnist
from tests.targets.cortex_m import needs_arm


def chain() -> Graph:
    return Chained(Net((6, 6, 3))).conv(4).dense(5).graph()


CASES = [
    ("arduino", lambda: mnist().graph(), Herringbone()),
    pytest.param("nucleo_f446re", lambda: random_graph(5), Joint(), marks=needs_arm),
    pytest.param("stm32f746g_sd", chain, Swap(), marks=[needs_arm, pytest.mark.ci]),
]


@pytest.mark.parametrize(("board", "make", "strategy"), CASES)
def test_each_element_is_compared(
    board: str, make: Callable[[], Graph], strategy: Strategy, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, hardware = make(), load_hardware(board)
    plan, given = strategy.plan(graph, hardware), frames(graph, 2)
    made = sum(graph.tensors[op.output].size for op in graph.operators)
    assert stepped.check(graph, plan, hardware, given, "host") > made / 2
    last = graph.operators[-1].output
    write = stepped.Interpreter.write

    def other(machine: stepped.Interpreter, buffer: Buffer, box: Box, values: IntArray) -> None:
        write(machine, buffer, box, values + (buffer.tensor == last))

    monkeypatch.setattr(stepped.Interpreter, "write", other)
    said = rf"image 0: .* first {last}\[.*expected -?\d+, got -?\d+"
    with pytest.raises(ThimbleError, match=said):
        stepped.check(graph, plan, hardware, given, "simulate")
