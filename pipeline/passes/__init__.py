"""Lossless changes of a graph: one file each, every output stays the same bit for bit.

``conf/config.yaml`` lists in ``passes`` the names of those that are made, in order.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Sequence

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph


def known() -> list[str]:
    """Return the names of all passes: the modules of this package that have ``apply``."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))


def applied(graph: Graph, names: Sequence[str]) -> Graph:
    """``graph`` after the passes ``names``, each from graph to graph.

    Raises:
        ThimbleError: for a name that is none of ``known()``.
    """
    *_, (_, last) = one_by_one(graph, names)
    return last


def one_by_one(graph: Graph, names: Sequence[str]) -> Iterator[tuple[str, Graph]]:
    """``graph`` itself, called "", and what each of the passes ``names`` makes of the one before.

    Raises:
        ThimbleError: for a name that is none of ``known()``.
    """
    yield "", graph
    for name in names:
        if name not in known():
            raise ThimbleError(f"passes: there is no pass {name}; have {', '.join(known())}")
        graph = importlib.import_module(f"{__name__}.{name}").apply(graph)
        yield name, graph


def size(graph: Graph) -> dict[str, float]:
    """Measure what passes reduce: bytes of weights, multiply–accumulates, operators."""
    return {
        "weight_bytes": graph.weight_bytes,
        "macs": graph.macs,
        "operators": len(graph.operators),
    }
