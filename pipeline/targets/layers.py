"""Attribute the cycles of an inference to layers: what the steps of nn_invoke are part of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.codegen.constants import Names
from pipeline.errors import ThimbleError

REST = "rest"
"""The cycles between the steps: nn_invoke's own."""


@dataclass(frozen=True)
class Layers:
    """
    Attributes:
        names: the layers in the order they are first computed, then ``REST``; empty if unknown.
        places: for each step of nn_invoke its layer's place in ``names``.
    """

    names: tuple[str, ...] = ()
    places: tuple[int, ...] = ()

    @classmethod
    def of(cls, steps: Mapping[str, Any]) -> Layers:
        """Read the content of ``steps.json``: what nn_feed does, and of nn_invoke each call."""
        if not steps:
            return cls()
        names = tuple(dict.fromkeys((steps["feed"], *steps["invoke"], REST)))
        return cls(names, tuple(names.index(name) for name in steps["invoke"]))

    def add_up(self, feed: int, invoke: int, steps: Sequence[int]) -> npt.NDArray[np.int64]:
        """(layers,) cycles of one inference; they add up to ``feed`` + ``invoke``.

        Raises:
            ThimbleError: when nn_invoke did not call what it should: the sizes and the program
                are of different builds.
        """
        found = np.zeros(len(self.names), np.int64)
        if not self.names:
            return found
        if len(steps) != len(self.places):
            raise ThimbleError(
                f"nn_invoke made {len(steps)} steps, size.json knows {len(self.places)}: "
                "run stage build again"
            )
        np.add.at(found, list(self.places), steps)
        found[0] += feed
        found[-1] += invoke - sum(steps)
        return found


SHARED = "dot"
"""The name, behind the prefix, of the function that several layers call: its cycles are theirs."""

INVOKE = "invoke"
"""The end of nn_invoke's name, behind the prefix that all names have."""


def prefix_of(functions: Iterable[str]) -> str:
    """Return the prefix of all names, separator included; "" where there is no nn_invoke."""
    found = [name.removesuffix(INVOKE) for name in functions if name.endswith(f"_{INVOKE}")]
    return min(found, key=len, default="")


def owners(functions: Iterable[str], names: Sequence[str]) -> dict[str, str]:
    """Return the layer of each function that is one layer's; arguments as of ``of_functions``."""
    prefix, found = prefix_of(functions), dict[str, str]()
    layers = {f"{prefix}{Names()(name).removeprefix('nn_')}": name for name in names}
    for function in functions if prefix else ():
        able = [each for each in layers if f"{function}_".startswith(f"{each}_")]
        if able:
            found[function] = layers[max(able, key=len)]
    return found


def of_functions(
    functions: Mapping[str, int], whole: int, names: Sequence[str]
) -> list[tuple[str, int]]:
    """(layer, cycles) of one inference that took ``whole`` cycles, ``REST`` the last: what no
    function is for alone, such as nn_invoke and what layers share. None where the compiler has left
    no function of any layer.

    Args:
        functions: the cycles of each, without what it called; those of a layer are called as it
            is, and maybe more behind.
        names: of the layers, in order.
    """
    found = dict.fromkeys(names, 0)
    for function, layer in owners(functions, names).items():
        found[layer] += functions[function]
    rest = whole - sum(found.values())
    if rest == whole:
        return []
    return [(name, cycles) for name, cycles in found.items() if cycles] + [(REST, rest)]
