import threading

import pytest

from pipeline.training.ahead import one_ahead


def test_results_are_those_of_the_function() -> None:
    with one_ahead(lambda index: index * index, 5) as make:
        assert [make(index) for index in range(5)] == [0, 1, 4, 9, 16]


def test_it_may_start_anywhere() -> None:
    with one_ahead(lambda index: index, 9) as make:
        assert [make(index) for index in (4, 5, 7)] == [4, 5, 7]


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


def test_nothing_beyond_the_end_is_made() -> None:
    made = []
    with one_ahead(made.append, 3) as ahead:
        ahead(2)
    assert made == [2]


def test_errors_reach_who_asks() -> None:
    def fail(index: int) -> int:
        raise ValueError(index)

    with one_ahead(fail, 1) as ahead, pytest.raises(ValueError, match="0"):
        ahead(0)
