from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.quantize.parameters import to_arrays
from pipeline.quantize.simulated import QuantizedNetwork
from pipeline.training.checkpoint import Checkpoint
from pipeline.training.environment import Run
from pipeline.training.paper_engine import Cores
from pipeline.training.paper_images import Judged
from pipeline.training.paper_kernel import Batches, Chain, build
from pipeline.training.paper_progress import Steps
from pipeline.training.paper_rows import parameters, to_network, to_row
from pipeline.training.paper_trials import Trials, fresh
from tests.comparing import equal

MODEL = Mnist2kb(channels=(3, 4))
KERNEL = build(Chain.of(MODEL.build(), 28))
EVERY = np.arange(600, dtype=np.uint32)
NONE = Checkpoint(None, "")


def images(count: int, seed: int) -> Judged:
    """Ten classes: a bright column, and noise."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, count, dtype=np.uint8)
    pixels = rng.integers(0, 4, (count, 14, 14, 1), dtype=np.uint8)
    pixels[np.arange(count), :, labels + 2] += 10
    shares = np.eye(10, dtype=np.uint8)[labels] * 255
    return Judged(pixels, labels, shares, np.zeros(count, np.float32))


def trials(count: int, threads: int = 2, seed: int = 1) -> Trials:
    seen = images(600, 0)
    return Trials(
        MODEL,
        Cores(KERNEL, threads),
        Run(seed, threads),
        Batches(seen.images, seen.labels, seen.shares, 0.7, 2.0),
        400,
        images(300, 1),
        200,
        Steps(),
        [fresh(MODEL, Run(seed), number) for number in range(count)],
    )


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
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    fresh(MODEL, Run(1), 0)
    assert torch.equal(torch.rand(3), wanted), "the global generator is left alone"


def test_phases_learn_and_the_best_come_first() -> None:
    made = trials(4)
    made.phase("float", 6, 0.02, 16, EVERY, NONE)
    losses = [trial.loss for trial in made.contenders]
    assert losses == sorted(losses) and made.contenders[0].score > 0.9
    made.contenders = made.contenders[:2]
    made.phase("quantized", 4, 0.005, 16, EVERY, NONE)
    made.phase("frozen", 3, 0.002, 16, EVERY, NONE)
    best = made.contenders[0]
    assert [row.phase for row in made.rows] == ["float"] * 6 + ["quantized"] * 4 + ["frozen"] * 3
    assert [row.epoch for row in made.rows] == list(range(1, 14))
    network = to_network(MODEL, best.row)
    held = torch.from_numpy(made.validation.images).permute(0, 3, 1, 2) / 16
    right = network(held).argmax(1).numpy() == made.validation.labels
    assert best.score == right.mean() > 0.9
    assert best.validation_accuracy == right[:200].mean()
    assert all(float(each.detach()).is_integer() for each in parameters(network)[-5:])


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
    class Fragile(Steps):
        def done(self, phase: str, step: int, of: int, text: str) -> None:
            if step == 3:
                raise KeyboardInterrupt

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
