import threading

import pytest

from pipeline.training.ahead import one_ahead


@pytest.mark.parametrize("asked", [range(5), (2, 3, 4), (1, 4)])
def test_results_are_those_of_the_function_from_anywhere(asked: range | tuple[int, ...]) -> None:
    made = []

    def square(index: int) -> int:
        made.append(index)
        return index * index

    with one_ahead(square, 5) as make:
        assert [make(index) for index in asked] == [index * index for index in asked]
    assert max(made) == 4, "nothing beyond the end"


def test_the_next_one_is_made_meanwhile() -> None:
    made, began = [], threading.Event()

    def make(index: int) -> int:
        made.append((index, threading.current_thread() is threading.main_thread()))
        if index == 1:
            began.set()
        return index

    with one_ahead(make, 2) as ahead:
        assert ahead(0) == 0
        assert began.wait()  # nobody asked for 1 yet
        assert ahead(1) == 1
    assert made == [(0, False), (1, False)]


def test_errors_reach_who_asks() -> None:
    def fail(index: int) -> int:
        raise ValueError(index)

    with one_ahead(fail, 1) as ahead, pytest.raises(ValueError, match="0"):
        ahead(0)
