"""Contenders that are trained at once, and polished: integers one step up or down."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline.metrics import SCORE
from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.quantize.int4 import Int4
from pipeline.quantize.parameters import to_arrays
from pipeline.quantize.simulated import QuantizedNetwork
from pipeline.training.checkpoint import Checkpoint
from pipeline.training.environment import Run
from pipeline.training.paper_engine import Cores
from pipeline.training.paper_images import SoftLabelled
from pipeline.training.paper_kernel import FROZEN, Batches, Chain, build
from pipeline.training.paper_polish import Grid, losses, slope, sweep
from pipeline.training.paper_progress import Steps
from pipeline.training.paper_rows import parameters, to_network, to_row
from pipeline.training.paper_trials import Trials, fresh
from tests.comparing import equal
from tests.training.support import Fragile
from tests.training.test_paper import FEW, TINY

MODEL = Mnist2kb(channels=(3, 4))
KERNEL = build(Chain.of(MODEL.build(), 28))
EVERY = np.arange(600, dtype=np.uint32)
NONE = Checkpoint(None, "")


def images(count: int, seed: int) -> SoftLabelled:
    """Ten classes: a bright column, and noise."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, count, dtype=np.uint8)
    pixels = rng.integers(0, 4, (count, 14, 14, 1), dtype=np.uint8)
    pixels[np.arange(count), :, labels + 2] += 10
    shares = np.eye(10, dtype=np.uint8)[labels] * 255
    return SoftLabelled(pixels, labels, shares, np.zeros(count, np.float32))


def batches(seed: int) -> Batches:
    seen = images(600, seed)
    return Batches(seen.images, seen.labels, seen.shares, 0.7, 2.0)


def trials(count: int, threads: int = 2, seed: int = 1) -> Trials:
    contenders = [fresh(MODEL, Run(seed), number) for number in range(count)]
    engine, run, held = Cores(KERNEL, threads), Run(seed, threads), images(300, 1)
    return Trials(
        MODEL, engine, run, batches=batches(0), epoch=400, validation=held, clean=200,
        steps=Steps(), contenders=contenders,
    )  # fmt: skip


def rows(made: Trials) -> np.ndarray:
    return np.stack([trial.row for trial in made.contenders])


def test_rows_and_networks_are_the_same_and_differ_by_trial() -> None:
    torch.manual_seed(0)
    made = QuantizedNetwork(MODEL.build())
    with torch.no_grad():
        for number, each in enumerate(parameters(made)):
            each.add_(number)
    again = to_network(MODEL, to_row(made))
    first, second = to_arrays(made), to_arrays(again)
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert len(to_row(made)) == KERNEL.parameters
    first, again, other = (fresh(MODEL, Run(1), number).row for number in (0, 0, 1))
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    kernel = first[:27].reshape(3, 9)
    np.testing.assert_allclose(kernel @ kernel.T, np.eye(3), atol=1e-6)
    before = torch.get_rng_state()
    kernel = fresh(MODEL, Run(1), 0, orthogonal=False).row[:27].reshape(3, 9)
    assert abs(kernel @ kernel.T - np.eye(3)).max() > 0.1 and abs(kernel).max() < 1 / 3, "PyTorch's"
    assert torch.equal(torch.get_rng_state(), before), "the global generator is left alone"


def test_threads_and_other_images_change_nothing() -> None:
    alone, together = (trials(3, threads) for threads in (1, 3))
    for each in (alone, together):
        each.phase("float", 2, 0.02, 16, EVERY, NONE)
    equal(rows(alone), rows(together))
    assert alone.rows == together.rows
    some = EVERY[100:300]
    whole, blank = trials(1), trials(1)
    blank.batches.images[:100] = blank.batches.images[300:] = 0
    for each in (whole, blank):
        each.phase("float", 2, 0.02, 16, some, NONE)
    equal(rows(whole), rows(blank))


def test_a_phase_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    whole, broken, resumed = trials(3), trials(3), trials(3)
    keep = Checkpoint(tmp_path, "key")
    whole.phase("float", 5, 0.02, 16, EVERY, NONE)
    broken.steps = Fragile()
    with pytest.raises(KeyboardInterrupt):
        broken.phase("float", 5, 0.02, 16, EVERY, keep)
    resumed.phase("float", 5, 0.02, 16, EVERY, keep)
    equal(rows(whole), rows(resumed))
    assert whole.rows == resumed.rows
    seen = [trial.number for trial in resumed.contenders]
    resumed.contenders = []
    resumed.rows = []
    resumed.phase("float", 5, 0.02, 16, EVERY, keep)  # finished: taken as it is
    assert [trial.number for trial in resumed.contenders] == seen


@pytest.fixture(scope="module")
def row() -> np.ndarray:
    """Return a row of a network that has learned something."""
    made = trials(1)
    for name, epochs, rate in (("float", 3, 0.01), ("quantized", 2, 0.003), ("frozen", 1, 0.001)):
        made.phase(name, epochs, rate, 16, EVERY, NONE)
    return made.contenders[0].row


def loss(row: np.ndarray, given: Batches) -> float:
    return float(losses(torch.from_numpy(KERNEL.logits(row, FROZEN, given.images)), given).mean())


def grid(row: np.ndarray) -> Grid:
    network = to_network(MODEL, row)
    network.freeze()
    return Grid.of(network)


def test_loss_slope_and_a_snapped_row_are_those_of_the_loops(row: np.ndarray) -> None:
    given, gradient = batches(5), np.zeros_like(row)
    mean = KERNEL.gradient(row, FROZEN, given, EVERY, gradient)
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
        made.polish(sweeps, EVERY[:200], place)
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
    right = graph.evaluate(FEW["validation_images"].astype(np.int64)).argmax(1)
    reached = (right == FEW["validation_labels"]).mean()
    assert reached == trained.rows[-1].validation_accuracy
