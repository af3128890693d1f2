"""Limit what a network may need: the keys of ``prune`` that do so, and whether a plan keeps to
them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, prod
from typing import Any

from pipeline.errors import ThimbleError

UNITS = {"pmu_bytes": "B", "weight_bytes": "B", "macs": "MACs", "latency_us": "us"}
"""The limits and what they are counted in; 0 is none."""

LATENCY = ("makespan_us", "modelled_us")
"""Keys of schedule.json; the first that is there is what pruning had in mind (``planned_us``)."""

PLANNING = ("strategy", "hardware", "passes")
"""Keys of ``prune`` that repeat the rest of the config: what the planner is asked with."""

UNREAD = {
    "title": "", "part": "", "simulator": "", "flasher": "", "platformio": "", "baud": 1,
    "wait_bytes": 0, "uart": {}, "toolchain": {"compiler": "", "package": ""},
}  # fmt: skip
"""Keys of a board that no planner reads, with values in their place."""


def limits(prune: Mapping[str, Any]) -> dict[str, float]:
    """Return those that are set.

    Raises:
        ThimbleError: for a negative one.
    """
    found = {name: prune.get(name) or 0 for name in UNITS}
    for name, value in found.items():
        if not value >= 0:  # nor nan
            raise ThimbleError(
                f"prune.{name}={value:g}: give the {UNITS[name]} that the pruned network may need "
                "at most, or 0 for no limit"
            )
    return {name: float(value) for name, value in found.items() if value}


def above_input(within: Mapping[str, float], shape: Sequence[int], streams: bool) -> None:
    """Raises ThimbleError for less memory than the input (shape) of bytes, which no pruning makes
    smaller, unless it ``streams`` in."""
    limit = within.get("pmu_bytes", inf)
    if limit < prod(shape) and not streams:
        raise ThimbleError(
            f"prune.pmu_bytes={limit:g}: the input alone takes {prod(shape):,} B, and "
            "pruning does not make it smaller; allow more, or give the model a smaller input"
        )


def enough(prune: Mapping[str, Any]) -> None:
    """Raises ThimbleError where ``prune`` doesn't say how much is to go."""
    if prune["name"] == "pex" and not limits(prune):
        raise ThimbleError(
            "prune=pex needs a limit: prune.pmu_bytes, weight_bytes, macs or latency_us"
        )
    if prune["name"] == "width" and bool(prune["width"]) == bool(limits(prune)):
        raise ThimbleError(
            "prune=width needs either prune.width, such as 0.5, or limits such as "
            "prune.pmu_bytes, not both"
        )


def asked(prune: Mapping[str, Any]) -> dict[str, Any]:
    """``prune`` without what it does not read: nothing of the planner where there are no limits,
    and of the board what plans depend on."""
    if not limits(prune):
        return {key: value for key, value in prune.items() if key not in PLANNING}
    board = {k: v for k, v in prune["hardware"].items() if k not in UNREAD}
    return {**prune, "hardware": board}


def advised(config: Mapping[str, Any], report: Mapping[str, Any]) -> str:
    """Return the advice of ``report``, a plan that doesn't fit, with what surely does first: the
    fastest of the other strategies, and limits for pruning where the network is trained here."""
    fitting = [each for each in report.get("others", ()) if each.get("fits")]
    quickest = min(fitting, key=lambda each: each.get("modelled_us", inf), default=None)
    named = quickest["strategy"] if quickest else ""
    ways = [f"{named if '=' in named else f'strategy={named}'} (fits)"] if named else []
    lacks = report["needed_bytes"] - report["available_bytes"]
    of = {"SRAM": "pmu_bytes", "flash": "weight_bytes"}.get(report["resource"], "")
    trained = not config["model"].get("enters")
    int8 = not config["quantize"]["_target_"].endswith("Int4")
    if of and trained and int8 and config["prune"]["name"] == "none" and report[of] > lacks:
        ways.append(f"prune=width prune.{of}={report[of] - lacks:.0f}")
    return str(report["advice"]).replace("try ", f"try {''.join(f'{way}, ' for way in ways)}", 1)


def times_over(needs: Mapping[str, float], within: Mapping[str, float]) -> float:
    """Say by what factor the worst of ``needs`` is above its limit; 1 and less keeps to all."""
    return max((needs[name] / limit for name, limit in within.items()), default=0.0)


def unmet(
    prune: Mapping[str, Any], report: Mapping[str, Any], steps: Sequence[Mapping[str, float]]
) -> dict[str, Any]:
    """Return what ``report``, the verdict of a plan, says instead when a limit is not kept: which,
    how far pruning got and what is there at the peak. ``steps`` are what the network needed,
    before it was quantized, after each step of pruning."""
    latency_us = next(report[key] for key in LATENCY if key in report)
    needs = {**report, "latency_us": latency_us}
    within = limits(prune)
    if times_over(needs, within) <= 1:
        return {}
    worst = max(within, key=lambda name: float(needs[name]) / within[name])
    left = "a channel of each group that can go is left"
    if worst == "pmu_bytes":
        left = f"the peak is at {report['peak_at']}"
    reached, seed = "pruned as far as it goes", ""
    if any(times_over(step, within) <= 1 for step in steps):
        reached, seed = "kept to it until it was quantized", "seed, "
    return {
        "status": "infeasible",
        "resource": f"prune.{worst}",
        "needed_bytes": needs[worst],
        "available_bytes": within[worst],
        "unit": UNITS[worst],
        "where": f"{reached}; {left}",
        "advice": f"try prune.{worst}={-(-needs[worst] // 1):.0f}, another {seed}strategy or model",
    }
