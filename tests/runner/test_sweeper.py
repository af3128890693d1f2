"""What the jobs of a sweep are made of."""

from __future__ import annotations

from pipeline.runner.sweeper import EveryCombination


def test_what_a_line_gives_comes_before_what_all_jobs_have() -> None:
    sweeper = EveryCombination(None, {"strategy.scheduler": "swapnn", "seed": "1,2"}, ["a=1 b=2"])
    line = ["model=resnet18", "strategy.scheduler=best"]
    assert sweeper.words(line) == [*line, "seed=1,2"]
    assert sweeper.words([]) == ["strategy.scheduler=swapnn", "seed=1,2"]
    assert sweeper.lines == [["a=1", "b=2"]]
