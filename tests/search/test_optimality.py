"""Orders and places of small networks are within 1 % of the best on average, and none 5 % above."""

import pytest

from tests.search import optimality
from tests.search.optimality import PROBLEMS


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_few_networks_get_the_least(problem: str) -> None:
    found = [PROBLEMS[problem](number) for number in range(6)]
    assert all(gap is None or gap.share == 0 for gap in found) and any(found)


@pytest.mark.slow
def test_two_hundred_networks(capsys: pytest.CaptureFixture[str]) -> None:
    assert optimality.main([]) == 0, capsys.readouterr().out
