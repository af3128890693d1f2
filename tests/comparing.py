"""Say how outputs differ and where first; ``tests/explained.py`` says what runs the case again."""

from pathlib import Path
from typing import Any

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.plan.vocabulary import Plan


def equal(got: Any, expected: Any, **about: object) -> None:
    """Raise AssertionError unless both are arrays of the same shape and values.

    ``about`` says what they are of: tensor, strategy, board, seed; what can be called is, with the
    number of the first frame that differs, to say more.
    """
    got, expected = np.asarray(got), np.asarray(expected)
    if np.array_equal(got, expected):
        return
    plain = {name: value for name, value in about.items() if not callable(value)}
    frame = int(np.argwhere(got != expected)[0][0]) if got.shape == expected.shape else 0
    more = [value(frame) for value in about.values() if callable(value)]
    case = [", ".join(f"{name} {value}" for name, value in plain.items())] if plain else []
    raise AssertionError("\n".join([difference(got, expected), *more, *case]))


def difference(got: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> str:
    """Say how many elements differ, and of the first one where it is and both values."""
    if got.shape != expected.shape:
        return f"shape {expected.shape} expected, got {got.shape}"
    wrong = np.argwhere(got != expected)
    place = tuple(int(index) for index in wrong[0])
    first = f"first at {list(place)}: expected {expected[place]}, got {got[place]}"
    return f"{len(wrong)} of {got.size} elements differ, {first}"


def said(graph: Graph, plan: Plan, folder: Path, board: str) -> dict[str, object]:
    """What ``equal`` says of results of C in ``folder``: layer, tensor, strategy, board, file."""
    return {
        "layer": ", ".join(graph.producer(name).name for name in graph.outputs),
        "tensor": ", ".join(graph.outputs),
        "strategy": plan.strategy,
        "board": board,
        "C": folder / "model.c",
    }
