import platform
import shutil
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
from pipeline.training import paper_kernel
from pipeline.training.paper_kernel import FLOAT, FROZEN, QUANTIZED, Batches, Chain, Kernel, build
from pipeline.training.paper_rows import parameters, to_row
from tests.comparing import equal
from tests.tiers import quick

COUNT = 100  # not a multiple of the lanes
SHAPES = [
    Mnist2kb(),
    Mnist2kb(channels=(3, 4)),
    Mnist2kb(channels=(4, 2, 3), input_shape=(24, 24, 2), classes=7),
    Mnist2kb(channels=(2, 3), kernel=5, input_shape=(32, 32, 1), input_pool=2),
    SmallCnn(),
    SmallCnn(
        convolutions=((3, 3, 2), (33, 2, 1), (2, 1, 1)),
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


def compiled(model: Mnist2kb | SmallCnn) -> Kernel:
    return build(Chain.of(model.build(), model.input_shape[0]))


def of_narrower(model: Mnist2kb, monkeypatch: pytest.MonkeyPatch, flag: str) -> Kernel:
    """Compiled as for a processor without the vectors that ``flag`` switches off."""
    monkeypatch.setattr(paper_kernel, "COMPILER", (*paper_kernel.COMPILER, flag))
    return build.__wrapped__(Chain.of(model.build(), model.input_shape[0]))


def tensor(images: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(images).permute(0, 3, 1, 2) / 16


def batches(model: Mnist2kb | SmallCnn, hard: float = 0.3, temperature: float = 2.0) -> Batches:
    rng = np.random.default_rng(3)
    side = model.input_shape[0] // model.input_pool
    return Batches(
        rng.integers(0, 16, (COUNT, side, side, model.input_shape[2]), dtype=np.uint8),
        rng.integers(0, model.classes, COUNT, dtype=np.uint8),
        rng.integers(1, 60, (COUNT, model.classes), dtype=np.uint8),
        hard,
        temperature,
    )


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


@pytest.mark.parametrize("model", quick(2, SHAPES), ids=str)
def test_quantized_logits_are_equal_bit_for_bit(model: Mnist2kb | SmallCnn) -> None:
    given = batches(model)
    made = network(model, given.images, 1.3)
    found = compiled(model).logits(to_row(made), QUANTIZED, given.images)
    equal(found, forward(made, QUANTIZED, given.images).detach().numpy())
    assert len(np.unique(found)) > 10


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
    for kernel in (compiled(model), of_narrower(model, monkeypatch, flag)):
        grad, begin = np.zeros_like(row), time.thread_time()
        kernel.gradient(row, QUANTIZED, given, order, grad)
        times.append(time.thread_time() - begin)
        found += [kernel.logits(row, QUANTIZED, given.images), grad]
    equal(found[0], found[2])
    np.testing.assert_allclose(found[1], found[3], atol=2e-6, rtol=1e-4)
    assert times[1] < 12 * times[0]


@pytest.mark.parametrize("mode", [FLOAT, QUANTIZED, FROZEN])
@pytest.mark.parametrize("model", SHAPES, ids=str)
def test_gradients_are_those_of_autograd(model: Mnist2kb | SmallCnn, mode: int) -> None:
    given = batches(model)
    made = network(model, given.images, 1.3)
    if mode == FROZEN:
        made.freeze()
    row = to_row(made)
    grad = np.full_like(row, np.nan)
    order = np.arange(COUNT, dtype=np.uint32)
    found = compiled(model).gradient(row, mode, given, order, grad)
    wanted = loss(forward(made, mode, given.images), given)
    torch.autograd.backward(wanted)
    each = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters(made)]
    flat = torch.cat([gradient.reshape(-1) for gradient in each]).numpy()
    assert found == pytest.approx(float(wanted.detach()), rel=1e-5)
    assert np.abs(flat).max() > 1e-3
    np.testing.assert_allclose(grad, flat, atol=2e-6, rtol=1e-4)
    thresholds = grad[-3 * len(made.quantized) + 1 :]
    assert thresholds.any() == (mode == QUANTIZED)


def test_a_step_is_adam() -> None:
    model = SHAPES[1]
    given = batches(model)
    made = network(model, given.images)
    row = to_row(made)
    order = np.random.default_rng(0).integers(0, COUNT, (3, 20), dtype=np.uint32)
    rates = np.array([0.01, 0.02, 0.005], np.float32)
    own = row.copy()
    moments = np.zeros((2, len(row)), np.float32)
    compiled(model).train(own, moments, 0, FLOAT, given, order, rates)
    weight = torch.nn.Parameter(torch.from_numpy(row.copy()))
    optimizer = torch.optim.Adam([weight])
    for rate, part in zip(rates, order, strict=True):
        grad = np.zeros_like(row)
        current = weight.detach().numpy().copy()
        compiled(model).gradient(current, FLOAT, given, part, grad)
        optimizer.param_groups[0]["lr"] = float(rate)
        weight.grad = torch.from_numpy(grad)
        optimizer.step()
    np.testing.assert_allclose(own, weight.detach().numpy(), atol=1e-6)
    assert np.abs(own - row).max() > 0.01


def test_weights_that_are_not_finite_are_an_error() -> None:
    model = SHAPES[1]
    given = batches(model)
    row = np.full(compiled(model).parameters, np.nan, np.float32)
    moments = np.zeros((2, len(row)), np.float32)
    order = np.zeros((1, 16), np.uint32)
    with pytest.raises(ThimbleError, match=r"not finite.*float_rate"):
        compiled(model).train(row, moments, 0, FLOAT, given, order, np.ones(1, np.float32))


def test_shapes_it_is_not_made_for() -> None:
    with pytest.raises(ThimbleError, match=r"layers of 2x2 and more, not \[12, 1\]"):
        compiled(SmallCnn(convolutions=((3, 5, 2), (4, 12, 1)), pooled=()))


def test_layers_it_is_not_made_for() -> None:
    network = Mnist2kb().build()
    network[1].padding = (1, 1)
    with pytest.raises(ThimbleError, match="no padding"):
        Chain.of(network, 28)
    with pytest.raises(ThimbleError, match="as in mnist_2kb"):
        Chain.of(Mnist2kb().build()[:-1], 28)


def test_no_compiler_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper_kernel, "COMPILER", ("no-such-compiler",))
    with pytest.raises(ThimbleError, match="gcc: install it"):
        compiled(Mnist2kb(channels=(2, 2)))


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_what_gcc_says_is_passed_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "broken.c"
    broken.write_text("int parameter_count(void) { return }\n")
    monkeypatch.setattr(paper_kernel, "SOURCE", broken)
    with pytest.raises(ThimbleError, match=r"gcc cannot compile broken\.c"):
        compiled(Mnist2kb(channels=(2, 4)))
