import numpy as np
import pytest
import torch

from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.models.small_cnn import SmallCnn
from pipeline.training import paper_stack
from pipeline.training.paper_device import GROUPS, Stacked, groups
from pipeline.training.paper_engine import Cores, Epoch, device
from pipeline.training.paper_kernel import FLOAT, FROZEN, QUANTIZED, Chain
from pipeline.training.paper_rows import to_row
from tests.comparing import equal
from tests.tiers import quick
from tests.training.test_paper_kernel import (
    COUNT,
    SHAPES,
    batches,
    compiled,
    forward,
    loss,
    network,
)

RATES = np.array([0.01, 0.02, 0.005], np.float32)


def chain(model: Mnist2kb | SmallCnn) -> Chain:
    return Chain.of(model.build(), model.input_shape[0])


def two(model: Mnist2kb | SmallCnn, mode: int) -> tuple[np.ndarray, list[torch.nn.Module]]:
    """Rows of two networks that differ in weights and thresholds."""
    images = batches(model).images
    made = [network(model, images, gain) for gain in (1.3, 0.4)]
    with torch.no_grad():
        for layer in made[1].quantized.values():
            layer.weight_log2 += 1
            layer.bias.mul_(2)
    if mode == FROZEN:
        for each in made:
            each.freeze()
    return np.stack([to_row(each) for each in made]), made


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("model", quick(SHAPES[5:], SHAPES), ids=str)
def test_quantized_logits_are_equal_bit_for_bit(model: Mnist2kb | SmallCnn, groups: int) -> None:
    given = batches(model)
    rows, made = two(model, QUANTIZED)
    images = torch.from_numpy(np.stack([given.images] * 2))
    found = paper_stack.logits(chain(model), torch.from_numpy(rows), images, QUANTIZED, groups)
    for trial, each in zip(found, made, strict=True):
        assert torch.equal(trial, forward(each, QUANTIZED, given.images).detach())
    assert not torch.equal(found[0], found[1])


@pytest.mark.parametrize("mode", [FLOAT, QUANTIZED, FROZEN])
@pytest.mark.parametrize("model", quick(SHAPES[5:], SHAPES), ids=str)
def test_gradients_are_those_of_the_compiled_loops(model: Mnist2kb | SmallCnn, mode: int) -> None:
    given = batches(model)
    rows, made = two(model, mode)
    stack = torch.from_numpy(rows).requires_grad_()
    images, labels, shares = (
        torch.from_numpy(np.stack([each] * 2))
        for each in (given.images, given.labels, given.shares)
    )
    found = paper_stack.logits(chain(model), stack, images, mode, 2)
    each = paper_stack.losses(found, labels, shares, given.hard, given.temperature).mean(1)
    (gradient,) = torch.autograd.grad(each.sum(), stack)
    order = np.arange(COUNT, dtype=np.uint32)
    for number, row in enumerate(rows):
        wanted = np.zeros_like(row)
        compiled(model).gradient(row, mode, given, order, wanted)
        np.testing.assert_allclose(gradient[number].numpy(), wanted, atol=4e-6, rtol=1e-4)
        slow = loss(forward(made[number], mode, given.images), given)
        assert float(each[number].detach()) == pytest.approx(float(slow.detach()), rel=1e-5)


def test_a_step_is_that_of_the_compiled_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one image in all, so that both draw the same."""
    model = SHAPES[1]
    given = batches(model)
    rows, _ = two(model, FLOAT)
    only = np.array([7], np.uint32)
    epoch = Epoch(FLOAT, 2, only, [1, 2], RATES, 1)
    engines = Cores(compiled(model), 2), Stacked(chain(model), "cpu")
    monkeypatch.setattr(Cores, "train", _drawn_again)
    found = []
    for engine in engines:
        own, moments = rows.copy(), np.full((2, *rows.shape), 1e-3, np.float32)
        moments = moments.transpose(1, 0, 2).copy()
        losses = engine.train(list(own), list(moments), given, epoch)
        found.append((own, moments, losses))
    for left, right in zip(*found, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-5)
    assert np.abs(found[0][0] - rows).max() > 0.005


def _drawn_again(self: Cores, rows: list, moments: list, given: object, epoch: Epoch) -> list:
    order = np.repeat(epoch.images[None], len(epoch.rates), 0)
    return [
        self.kernel.train(row, moment, epoch.done, epoch.mode, given, order, epoch.rates)
        for row, moment in zip(rows, moments, strict=True)
    ]


@pytest.mark.ci
def test_both_engines_judge_alike() -> None:
    model = SHAPES[4]
    given = batches(model)
    rows, _ = two(model, QUANTIZED)
    engines = Cores(compiled(model), 2), Stacked(chain(model), "cpu")
    left, right = (each.logits(list(rows), QUANTIZED, given.images) for each in engines)
    assert all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


def test_equal_seeds_draw_equal_images() -> None:
    model = SHAPES[1]
    given = batches(model)
    every = np.arange(COUNT, dtype=np.uint32)
    found = []
    for seeds in ([1, 2], [1, 2], [1, 3]):
        rows, _ = two(model, FLOAT)
        moments = np.zeros((2, 2, rows.shape[1]), np.float32)
        epoch = Epoch(FLOAT, 0, every, seeds, RATES, 20)
        Stacked(chain(model), "cpu").train(list(rows), list(moments), given, epoch)
        found.append(rows)
    equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


@pytest.mark.parametrize("trials", [1, 3, 32, 500])
def test_groups_divide_the_images(trials: int) -> None:
    found = groups(trials, 64)
    assert 64 % found == 0
    assert found == 1 or found * trials <= GROUPS


def test_a_device_is_taken_by_name_or_if_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert [device(name) for name in ("cpu", "auto")] == ["cpu", "cuda"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device("auto") == "cpu"
