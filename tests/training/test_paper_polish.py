"""Integers one step up or down: the loops' loss, exact grids, and a loss that falls."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline.metrics import SCORE
from pipeline.quantize.int4 import Int4
from pipeline.training.checkpoint import Checkpoint
from pipeline.training.environment import Run
from pipeline.training.paper_engine import Cores
from pipeline.training.paper_kernel import FROZEN, Batches
from pipeline.training.paper_polish import Grid, losses, slope, sweep
from pipeline.training.paper_rows import to_network
from tests.comparing import equal
from tests.training.test_paper import FEW, TINY
from tests.training.test_paper_trials import KERNEL, MODEL, NONE, images, trials

SOME = np.arange(600, dtype=np.uint32)


@pytest.fixture(scope="module")
def row() -> np.ndarray:
    """Of a network that has learned something."""
    made = trials(1)
    for name, epochs, rate in (("float", 3, 0.01), ("quantized", 2, 0.003), ("frozen", 1, 0.001)):
        made.phase(name, epochs, rate, 16, SOME, NONE)
    return made.contenders[0].row


def batches(seed: int) -> Batches:
    seen = images(600, seed)
    return Batches(seen.images, seen.labels, seen.shares, 0.7, 2.0)


def loss(row: np.ndarray, given: Batches) -> float:
    return float(losses(torch.from_numpy(KERNEL.logits(row, FROZEN, given.images)), given).mean())


def grid(row: np.ndarray) -> Grid:
    network = to_network(MODEL, row)
    network.freeze()
    return Grid.of(network)


def test_loss_slope_and_a_snapped_row_are_those_of_the_loops(row: np.ndarray) -> None:
    given, gradient = batches(5), np.zeros_like(row)
    mean = KERNEL.gradient(row, FROZEN, given, SOME, gradient)
    assert loss(row, given) == pytest.approx(mean, rel=1e-4)
    network = to_network(MODEL, row)
    network.freeze()
    assert slope(network, given) == pytest.approx(gradient, rel=1e-3, abs=1e-5)
    snapped = grid(row).snap(row)
    assert not np.array_equal(snapped, row)
    equal(grid(row).snap(snapped), snapped)
    given = images(200, 7).images
    equal(*(KERNEL.logits(each, FROZEN, given) for each in (row, snapped)))


def test_a_change_is_one_step_within_the_integers(row: np.ndarray) -> None:
    """At the bounds there is none outwards; nor of what is no weight or bias."""
    known = grid(row)
    gradient = np.where(np.arange(len(row)) % 2, 1, -1).astype(np.float32)
    ends = np.where(gradient > 0, known.low, known.high)
    assert known.downhill(ends, gradient) == []
    changes = known.downhill(np.zeros_like(row), gradient)
    assert sorted(at for at, _ in changes) == np.flatnonzero(known.step).tolist()
    assert all(change == -gradient[at] * known.step[at] for at, change in changes)
    sizes = [known.step[at] for at, _ in changes]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.ci
def test_the_loss_of_both_halves_falls(row: np.ndarray) -> None:
    halves = batches(11), batches(12)
    before = [loss(row, each) for each in halves]
    found, told, changes = sweep(row, MODEL, Cores(KERNEL, 2), *halves)
    after = [loss(found, each) for each in halves]
    assert changes > 0 and after[0] < before[0] and after[1] < before[1]
    assert told == pytest.approx(after[1])
    moved = np.abs(found - grid(row).snap(row)) / np.where(grid(row).step, grid(row).step, 1)
    assert set(moved.round(3)) == {0, 1} and moved.sum() == changes


@pytest.mark.ci
def test_it_goes_on_where_it_was(row: np.ndarray, tmp_path: Path) -> None:
    keep = Checkpoint(tmp_path, "polished")
    found = []
    for sweeps, place in ((1, keep), (2, keep), (2, NONE)):
        made = trials(1)
        made.contenders[0].row = row
        made.polish(sweeps, SOME[:200], place)
        found.append((made.contenders[0].row, made.contenders[0].score, made.rows))
    first, resumed, whole = found
    equal(resumed[0], whole[0])
    assert resumed[1:] == whole[1:]
    assert first[2] == whole[2][:1]


@pytest.mark.ci
def test_the_best_score_stays_and_is_the_integers(tmp_path: Path) -> None:
    run = Run(1, checkpoints=tmp_path)
    short = replace(TINY, trials=[2, 1, 1])
    before = short.train(MODEL, FEW, run)
    polished = replace(short, polish_sweeps=2)
    trained = polished.train(MODEL, FEW, run)
    assert [row.phase for row in trained.rows[len(before.rows) :]] == ["polished"] * 2
    assert float(trained.weights[SCORE]) >= float(before.weights[SCORE])
    graph = Int4().graph("net", MODEL, trained.weights)
    right = graph.outputs(FEW["validation_images"].astype(np.int64)).argmax(1)
    reached = (right == FEW["validation_labels"]).mean()
    assert reached == trained.rows[-1].validation_accuracy
