"""Values of other types than a dataclass says are found, wherever they are."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pytest

from pipeline.typed import LARGEST, misfit


@dataclass(frozen=True)
class Leaf:
    number: int = 1
    share: float = 0.5
    on: bool = False


@dataclass(frozen=True)
class Tree:
    kind: Literal["oak", "elm"] = "oak"
    name: str = "t"
    leaf: Leaf | int = 3
    leaves: tuple[Leaf, ...] = ()
    cells: tuple[int, ...] = ()
    pairs: tuple[tuple[str, int], ...] = ()
    inner: tuple[Tree | Leaf, ...] = field(default=())


RIGHT = Tree("elm", "t", Leaf(), (Leaf(2),), (1, 2), (("a", 1),), (Tree(), Leaf()))


def test_what_is_right_passes() -> None:
    tree = Tree()
    for _ in range(20_000):
        tree = Tree(inner=(tree,))
    assert misfit(RIGHT) is misfit(Tree()) is misfit(tree) is None


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("kind", "ash", "Tree.kind is 'ash'"),
        ("kind", ["oak"], "Tree.kind is"),
        ("kind", "a" * 1000, "Tree.kind is 'aaa"),
        ("name", None, "Tree.name is None, not str"),
        ("leaf", 3.0, "Tree.leaf is 3.0"),
        ("leaf", True, "Tree.leaf is True"),
        ("leaf", Tree(), "Tree.leaf is Tree"),
        ("leaf", Leaf(number=1.5), "Leaf.number is 1.5, not int"),  # type: ignore[arg-type]
        ("leaf", Leaf(number=LARGEST + 1), "Leaf.number is 281474976710657"),
        ("leaf", Leaf(share=float("nan")), "Leaf.share is nan"),
        ("leaf", Leaf(share=1), "Leaf.share is 1, not float"),
        ("leaf", Leaf(on=0), "Leaf.on is 0, not bool"),  # type: ignore[arg-type]
        ("leaves", [Leaf()], "Tree.leaves is [Leaf"),
        ("leaves", (Leaf(), None), "Tree.leaves is None"),
        ("cells", (1, 2, "3"), "Tree.cells is '3'"),
        ("cells", (1, float("inf")), "Tree.cells is inf"),
        ("pairs", (("a",),), "Tree.pairs has 1 items, not 2"),
        ("pairs", (("a", "b"),), "Tree.pairs is 'b'"),
        ("inner", (Tree(inner=(Leaf(number="x"),)),), "Leaf.number is 'x'"),  # type: ignore[arg-type]
    ],
)
def test_what_is_wrong_is_named(key: str, value: Any, said: str) -> None:
    found = misfit(replace(RIGHT, **{key: value}))
    assert found is not None and found.startswith(said) and len(found) < 200
