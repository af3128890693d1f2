"""Random networks on simulated cores, many in a firmware: as whole tensors, row by row, and row by
row while the input arrives. Every output is compared with the integer graph's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.hardware import Hardware
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.int8.support import frames
from tests.comparing import equal
from tests.graphs import random_graph
from tests.strategies import nets
from tests.targets.cortex_m import ONE_A_CORE, board_named, built, needs_arm, outputs, simulated
from tests.targets.together import Case, differing
from tests.tiers import quick

pytestmark = [needs_arm, pytest.mark.usefixtures("compiled_once", "no_host")]

AT_ONCE = 20
"""That the flash of all of the boards holds."""


def cases(seeds: Iterable[int], board: Hardware) -> Iterator[Case]:
    """Rows, of every other network while the input arrives, and of every fourth whole tensors."""
    for seed in seeds:
        graph, streams = random_graph(seed), seed % 2 == 1
        rows = Joint().plan(graph, replace(board, streams_input=streams))
        yield Case.of(f"{seed} {'streamed' if streams else 'held'}", graph, rows, seed=seed)
        if seed % 4 == 0:
            yield Case.of(f"{seed} whole", graph, Ordinary().plan(graph, board), seed=seed)


@pytest.mark.parametrize("name", quick(["nucleo_f446re"], ONE_A_CORE, ci=1))
def test_random_networks(name: str, tmp_path: Path) -> None:
    board = board_named(name)
    assert not differing(tmp_path, list(cases(range(2), board)), board)


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_A_CORE)
@pytest.mark.parametrize("first", range(0, 300, AT_ONCE))
def test_three_hundred_random_networks(name: str, first: int, tmp_path: Path) -> None:
    board = board_named(name)
    assert not differing(tmp_path, list(cases(range(first, first + AT_ONCE), board)), board)


@pytest.mark.ci
def test_an_output_that_differs_is_found(tmp_path: Path) -> None:
    board = board_named("nucleo_f446re")
    first, second, *_ = cases((1, 3), board)
    wrong = second.expected.copy()
    wrong[-1].flat[-1] ^= 1
    assert differing(tmp_path, [first, replace(second, expected=wrong)], board) == [second.name]


@pytest.mark.parametrize("name", quick(0, ("nucleo_f446re", "nucleo_g0b1re"), ci=1))
def test_rows_are_made_while_others_arrive(name: str, tmp_path: Path) -> None:
    """Little is left to do after the last byte, and the memory is as announced."""
    graph, left = nets.ds_cnn((16,) * 3), {}
    given = frames(graph, 3)
    for streams in (False, True):
        hardware = board_named(name, streams_input=streams)
        plan, folder = Joint().plan(graph, hardware), tmp_path / str(streams)
        size = built(folder, graph, hardware, plan)
        runs = simulated(folder, graph, hardware, size, given)
        equal(outputs(graph, runs), graph.outputs(given))
        assert runs.arena_touched_bytes == size.ram_objects["nn_arena"]
        left[streams] = int(runs.instructions.max())
    assert left[True] < 0.4 * left[False]
