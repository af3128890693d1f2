"""What kernels in Thumb-1 assembly say they take, against what simulated layers took."""

from __future__ import annotations

import pytest

from pipeline.kernels.thumb import KERNELS, ThumbKernel
from tests.kernels.thumb.bench import LAYERS, error, fitted, form_of, recorded
from tests.tiers import quick

LARGEST_ERROR = 0.03


def test_all_layers_are_recorded() -> None:
    assert [layer for layer, _ in recorded()] == LAYERS
    assert {layer.kernel for layer in LAYERS} == {kernel.name for kernel in KERNELS}


@pytest.mark.parametrize("number", quick(range(0, len(LAYERS), 4), range(len(LAYERS))))
def test_the_error_is_bounded(number: int) -> None:
    layer, taken = recorded()[number]
    assert abs(error(layer, taken)) <= LARGEST_ERROR


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.word)
def test_the_costs_are_the_fitted_ones(kernel: ThumbKernel) -> None:
    assert kernel.costs == pytest.approx(fitted(kernel.name), rel=0.02)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.word)
def test_each_cost_counts(kernel: ThumbKernel) -> None:
    """None is there that no recorded layer has, and nothing is counted that costs nothing."""
    forms = [form_of(layer)[1] for layer, _ in recorded() if layer.kernel == kernel.name]
    had = {word for form in forms for word, n in kernel.counts(form).items() if n}
    assert had == set(kernel.costs)
