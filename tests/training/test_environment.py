from pathlib import Path

import pytest
import torch

from pipeline.training.environment import Run, repeatable


def numbers(*counters: int, seed: int = 0) -> list[float]:
    return torch.rand(4, generator=Run(seed).generator(*counters)).tolist()


def test_each_purpose_has_its_own_numbers() -> None:
    drawn = [numbers(), numbers(0), numbers(1), numbers(0, 0), numbers(0, seed=1)]
    assert len({tuple(values) for values in drawn}) == len(drawn)
    assert numbers(3, 1) == numbers(3, 1)


def test_inside_everything_is_repeatable() -> None:
    with repeatable(Run(seed=5)):
        first = torch.rand(3)
        assert torch.are_deterministic_algorithms_enabled()
    with repeatable(Run(seed=5)):
        assert torch.equal(first, torch.rand(3))


@pytest.mark.parametrize(("threads", "expected"), [(1, 1), (2, 1), (3, 2)])
def test_one_thread_is_left_for_the_images(threads: int, expected: int) -> None:
    with repeatable(Run(threads=threads)):
        assert torch.get_num_threads() == expected


def test_all_is_put_back_even_after_an_error() -> None:
    torch.manual_seed(1)
    expected = torch.rand(2)
    torch.manual_seed(1)
    threads = torch.get_num_threads()
    with pytest.raises(KeyError), repeatable(Run(seed=9, threads=3)):
        raise KeyError
    assert torch.get_num_threads() == threads
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.utils.deterministic.fill_uninitialized_memory  # as PyTorch has it
    assert torch.equal(torch.rand(2), expected)


def test_checkpoints_are_where_the_runner_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("THIMBLE_CHECKPOINTS", raising=False)
    assert Run.from_environment(3, 1) == Run(3, 1, None)
    monkeypatch.setenv("THIMBLE_CHECKPOINTS", "/kept/here")
    assert Run.from_environment(3, 1) == Run(3, 1, Path("/kept/here"))
