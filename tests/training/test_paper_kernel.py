"""Trials that are trained at once, by loops compiled from C or on a device, against autograd."""

import platform
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy, log_softmax

from pipeline.errors import ThimbleError
from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.models.small_cnn import SmallCnn
from pipeline.quantize.simulated import QuantizedNetwork
from pipeline.training import paper_kernel, paper_stack
from pipeline.training.paper_device import GROUPS, Stacked, groups
from pipeline.training.paper_engine import Cores, Epoch, device
from pipeline.training.paper_kernel import FLOAT, FROZEN, QUANTIZED, Batches, Chain, Kernel, build
from pipeline.training.paper_rows import parameters, to_row
from tests.comparing import equal
from tests.tiers import quick

RATES = np.array([0.01, 0.02, 0.005], np.float32)
COUNT = 100  # not a multiple of the lanes
SHAPES = [
    Mnist2kb(),
    Mnist2kb(channels=(3, 4)),
    Mnist2kb(channels=(4, 2, 3), input_shape=(24, 24, 2), classes=7),
    Mnist2kb(channels=(2, 3), kernel=5, input_shape=(32, 32, 1), input_pool=2),
    SmallCnn(),
    SmallCnn(
        convolutions=((3, 3, 1), (33, 3, 2), (2, 1, 1)),
        pooled=(1, 2),
        input_shape=(27, 27, 3),
        classes=3,
    ),
]


def network(model: Mnist2kb | SmallCnn, images: np.ndarray, gain: float = 1.0) -> QuantizedNetwork:
    torch.manual_seed(0)
    made = QuantizedNetwork(model.build())
    with torch.no_grad():
        for layer in made.quantized.values():
            layer.bias.normal_(0, 0.1)
    made.calibrate(tensor(images))
    with torch.no_grad():
        for layer in made.quantized.values():
            layer.layer.weight *= gain  # beyond the thresholds, so that values are clipped
    return made


def chain(model: Mnist2kb | SmallCnn) -> Chain:
    return Chain.of(model.build(), model.input_shape[0])


def compiled(model: Mnist2kb | SmallCnn) -> Kernel:
    return build(chain(model))


def tensor(images: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(images).permute(0, 3, 1, 2) / 16


def batches(model: Mnist2kb | SmallCnn, hard: float = 0.3, temperature: float = 2.0) -> Batches:
    rng = np.random.default_rng(3)
    side = model.input_shape[0] // model.input_pool
    images = rng.integers(0, 16, (COUNT, side, side, model.input_shape[2]), dtype=np.uint8)
    labels = rng.integers(0, model.classes, COUNT, dtype=np.uint8)
    taught = rng.integers(1, 60, (COUNT, model.classes), dtype=np.uint8)
    return Batches(images, labels, taught, hard, temperature)


def forward(made: QuantizedNetwork, mode: int, images: np.ndarray) -> torch.Tensor:
    if mode != FLOAT:
        result: torch.Tensor = made(tensor(images))
        return result
    x = tensor(images)
    for layer in made.layers.values():
        x = layer.layer(x) if hasattr(layer, "out_log2") else layer(x)
        if getattr(layer, "out_log2", None) is not None:
            x = torch.relu(x)
    return x


def loss(logits: torch.Tensor, given: Batches) -> torch.Tensor:
    """Written once more, the slow way."""
    logits = logits.double()
    shares = torch.from_numpy(given.shares).double()
    shares /= shares.sum(1, keepdim=True)
    warm = log_softmax(logits / given.temperature, 1)
    taught = -(shares * warm).sum(1).mean() * given.temperature**2
    labelled = cross_entropy(logits, torch.from_numpy(given.labels).long())
    return given.hard * labelled + (1 - given.hard) * taught


def two(model: Mnist2kb | SmallCnn, mode: int) -> tuple[np.ndarray, list[QuantizedNetwork]]:
    """Rows of two networks that differ in weights and thresholds."""
    images = batches(model).images
    made = [network(model, images, gain) for gain in (1.3, 0.4)]
    with torch.no_grad():
        for layer in made[1].quantized.values():
            layer.weight_log2 += 1
            layer.bias.mul_(2)
    for each in made if mode == FROZEN else ():
        each.freeze()
    return np.stack([to_row(each) for each in made]), made


@pytest.mark.parametrize("model", quick([*SHAPES[:2], SHAPES[5]], SHAPES), ids=str)
def test_quantized_logits_are_equal_bit_for_bit(model: Mnist2kb | SmallCnn) -> None:
    """Compare the compiled loops', and those of tensors that hold several networks."""
    given = batches(model)
    rows, made = two(model, QUANTIZED)
    images = torch.from_numpy(np.stack([given.images] * 2))
    stacks = [
        paper_stack.logits(chain(model), torch.from_numpy(rows), images, QUANTIZED, groups)
        for groups in (1, 4)
    ]
    for number, each in enumerate(made):
        wanted = forward(each, QUANTIZED, given.images).detach().numpy()
        equal(compiled(model).logits(rows[number], QUANTIZED, given.images), wanted)
        assert len(np.unique(wanted)) > 10 or number
        for stack in stacks:
            equal(stack[number].numpy(), wanted)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="options of gcc for x86-64")
@pytest.mark.parametrize("flag", quick(1, ["-mno-avx512f", "-mno-avx"]))
def test_narrower_vectors_give_the_same_at_a_few_times_the_cost(
    flag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors wider than the machine's took 20 times as long: gcc keeps them in memory."""
    model = SHAPES[0]
    given, times = batches(model), list[float]()
    row = to_row(network(model, given.images, 1.3))
    order = np.tile(np.arange(COUNT, dtype=np.uint32), 20)
    found: list[np.ndarray] = []
    whole = compiled(model)
    monkeypatch.setattr(paper_kernel, "COMPILER", (*paper_kernel.COMPILER, flag))
    for kernel in (whole, build.__wrapped__(chain(model))):
        grad, begin = np.zeros_like(row), time.thread_time()
        kernel.gradient(row, QUANTIZED, given, order, grad)
        times.append(time.thread_time() - begin)
        found += [kernel.logits(row, QUANTIZED, given.images), grad]
    equal(found[0], found[2])
    np.testing.assert_allclose(found[1], found[3], atol=2e-6, rtol=1e-4)
    assert times[1] < 12 * times[0]


@pytest.mark.parametrize("mode", [FLOAT, QUANTIZED, FROZEN])
@pytest.mark.parametrize("model", quick([*SHAPES[:2], SHAPES[5]], SHAPES), ids=str)
def test_gradients_are_those_of_autograd(model: Mnist2kb | SmallCnn, mode: int) -> None:
    given = batches(model)
    rows, made = two(model, mode)
    stack = torch.from_numpy(rows).requires_grad_()
    images, labels, shares = (
        torch.from_numpy(np.stack([each] * 2))
        for each in (given.images, given.labels, given.shares)
    )
    found = paper_stack.logits(chain(model), stack, images, mode, 2)
    losses = paper_stack.losses(found, labels, shares, given.hard, given.temperature).mean(1)
    (stacked,) = torch.autograd.grad(losses.sum(), stack)
    for number, (row, each) in enumerate(zip(rows, made, strict=True)):
        grad = np.full_like(row, np.nan)
        order = np.arange(COUNT, dtype=np.uint32)
        looped = compiled(model).gradient(row, mode, given, order, grad)
        wanted = loss(forward(each, mode, given.images), given)
        torch.autograd.backward(wanted)
        known = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters(each)]
        flat = torch.cat([gradient.reshape(-1) for gradient in known]).numpy()
        assert np.abs(flat).max() > 1e-3
        for said, gradient in ((looped, grad), (losses[number].item(), stacked[number].numpy())):
            assert said == pytest.approx(float(wanted.detach()), rel=1e-5)
            np.testing.assert_allclose(gradient, flat, atol=4e-6, rtol=1e-4)
        assert grad[-3 * len(each.quantized) + 1 :].any() == (mode == QUANTIZED)


def test_a_step_is_adam() -> None:
    model = SHAPES[1]
    given = batches(model)
    made = network(model, given.images)
    row = to_row(made)
    order = np.random.default_rng(0).integers(0, COUNT, (3, 20), dtype=np.uint32)
    own = row.copy()
    moments = np.zeros((2, len(row)), np.float32)
    compiled(model).train(own, moments, 0, FLOAT, given, order, RATES)
    weight = torch.nn.Parameter(torch.from_numpy(row.copy()))
    optimizer = torch.optim.Adam([weight])
    for rate, part in zip(RATES, order, strict=True):
        grad = np.zeros_like(row)
        current = weight.detach().numpy().copy()
        compiled(model).gradient(current, FLOAT, given, part, grad)
        optimizer.param_groups[0]["lr"] = float(rate)
        weight.grad = torch.from_numpy(grad)
        optimizer.step()
    np.testing.assert_allclose(own, weight.detach().numpy(), atol=1e-6)
    assert np.abs(own - row).max() > 0.01
    own[:] = np.nan
    with pytest.raises(ThimbleError, match=r"not finite.*float_rate"):
        compiled(model).train(own, moments, 0, FLOAT, given, order, RATES)


def test_what_it_is_not_made_for_and_no_compiler_are_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(ThimbleError, match=r"layers of 2x2 and more, not \[12, 1\]"):
        compiled(SmallCnn(convolutions=((3, 5, 2), (4, 12, 1)), pooled=()))
    padded = Mnist2kb().build()
    padded[1].padding = (1, 1)
    with pytest.raises(ThimbleError, match="no padding"):
        Chain.of(padded, 28)
    with pytest.raises(ThimbleError, match="as in mnist_2kb"):
        Chain.of(Mnist2kb().build()[:-1], 28)
    monkeypatch.setattr(paper_kernel, "SOURCE", tmp_path / "broken.c")
    (tmp_path / "broken.c").write_text("int parameter_count(void) { return }\n")
    with pytest.raises(ThimbleError, match=r"gcc cannot compile broken\.c"):
        compiled(Mnist2kb(channels=(2, 4)))
    monkeypatch.setattr(paper_kernel, "COMPILER", ("no-such-compiler",))
    with pytest.raises(ThimbleError, match="gcc: install it"):
        compiled(Mnist2kb(channels=(2, 2)))


def test_a_step_is_that_of_the_compiled_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw from one image in all, so that both draw the same."""
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
