"""Other values of a config's keys, planned and timed, but neither proved nor tried: for curves."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from pipeline import board, config
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.fit import roomy
from pipeline.plan.vocabulary import Plan
from pipeline.timing.summary import summary

LONG = ("traffic",)
"""Of a summary, what a curve does not show."""


Figures = Callable[[Plan, Graph, Hardware], Mapping[str, Any]]


def none(plan: Plan, graph: Graph, hardware: Hardware) -> dict[str, Any]:
    return {}


def study(cfg: Mapping[str, Any], graph: Graph, figures: Figures = none) -> list[dict[str, Any]]:
    """For each of ``cfg["study"]``, a mapping of dotted keys to values: these as ``set``, the
    plan's notes and its times; or an ``error`` where nothing can be planned, or (``status:
    infeasible``) where the plan does not fit.

    With ``only: counts`` nothing is planned: what the strategy counts without (``counts``).

    Args:
        figures: of a plan, besides.
    """
    return [_variant(cfg, overrides, graph, figures) for overrides in cfg["study"]]


def _variant(
    cfg: Mapping[str, Any], overrides: Mapping[str, Any], graph: Graph, figures: Figures
) -> dict[str, Any]:
    keys = {key: value for key, value in overrides.items() if key != "only"}
    values = changed(cfg, keys)
    found: dict[str, Any] = {"set": keys}
    try:
        hardware = board.hardware(values["hardware"])
        if overrides.get("only") == "counts":
            counts: dict[str, int] = config.instantiate(values["strategy"]).counts(graph)
            return found | counts
        plan = config.instantiate(values["strategy"]).plan(graph, hardware)
        if short := lacking(plan):
            return found | {"status": "infeasible", "error": short}
        timed = {**figures(plan, graph, hardware), **summary(plan, graph, hardware)}
    except ThimbleError as error:
        return found | {"error": str(error)}
    return found | dict(plan.notes) | {n: v for n, v in timed.items() if n not in LONG}


def lacking(plan: Plan) -> str:
    """Which memory is too small for ``plan``, and by how much; empty when it fits."""
    pairs = zip(plan.memories, roomy(plan).memories, strict=True)
    short = (
        f"needs {needed.bytes} B of {has.name.upper()}, {has.bytes} B are available"
        for has, needed in pairs
        if needed.bytes > has.bytes
    )
    return next(short, "")


def changed(cfg: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of ``cfg`` with other values of dotted keys.

    Raises:
        ThimbleError: for a key that it does not have.
    """
    values = copy.deepcopy(dict(cfg))
    for key, value in overrides.items():
        *groups, last = key.split(".")
        place: Any = values
        for group in groups:
            place = place.get(group, {})
        if last not in place:
            raise ThimbleError(f"study: there is no key {key}: see --cfg job")
        place[last] = value
    return values
