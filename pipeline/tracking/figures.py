"""The metrics of a run, why one of those that everybody asks for is missing, or its model, and its
curves."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeline.artifacts import read_json
from pipeline.home import STAGES, no_later
from pipeline.words import METRICS

PLANNED, MEASURED = ("schedule",), ("simulate", "measure")
_WEAR = ("wear", "wear_years_first_failure", "wear_years_half", "write_amplification_erase")
ASKED = {
    **dict.fromkeys(("accuracy_int", "latency_us", "energy_uj"), MEASURED),
    **dict.fromkeys(("pmu_bytes", *_WEAR), PLANNED),
    **{"sram_bytes": ("build",), "model": ("generate",)},
}
"""Metrics that each run has, or says why not; and the stages that it takes to know each.
``model`` is the run's network as a model of MLflow."""

UNDONE = {"schedule": "planned", "build": "built", "simulate": "executed"}
"""Participles of stages that a run did not get to; those of others are their names and a ``d``."""

PRUNING = {"layers": "pruning", "steps": "pruning_steps", "epochs": "pruning_epochs"}
"""MLflow's names of the tables of pruning.json."""


def known(result: Mapping[str, Any]) -> dict[str, float]:
    """Return the metrics in ``result``, without accuracies that mean nothing."""
    learnt = not result.get("random_weights")
    found = {name: result.get(name) for name in METRICS}
    return {
        name: float(value)
        for name, value in found.items()
        if isinstance(value, int | float) and (learnt or not name.startswith("accuracy"))
    }


def missing(result: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, str]:
    """Say why each of ASKED is missing, in a few words; none if all are there, and none of a model
    that can be made.

    Args:
        result: what ``result.json`` holds.
        config: the resolved config, empty where it is not known.
    """
    there = known(result)
    early = _early(result)
    found = {
        name: early or _until(stages, config) or _why(name, result, config)
        for name, stages in ASKED.items()
        if name not in there
    }
    return {name: reason for name, reason in found.items() if reason}


def _early(result: Mapping[str, Any]) -> str:
    """Say what ended a run before its last stage; "" if nothing did."""
    if result["status"] == "infeasible":
        needed, available = result.get("needed_bytes"), result.get("available_bytes")
        unit = result.get("unit", "B")
        return f"does not fit: {result.get('resource')} needs {needed} {unit} of {available} {unit}"
    if result["status"] == "failed" and "images_host" not in result:
        return f"the run failed: {result.get('error', 'no error was noted')}"
    return ""


def _until(stages: Iterable[str], config: Mapping[str, Any]) -> str:
    """Say that the run was not to get to all of ``stages``; "" if it was."""
    until = str(config.get("until", STAGES[-1]))
    beyond = [stage for stage in stages if not no_later(stage, until)]
    return f"nothing {UNDONE.get(beyond[0], f'{beyond[0]}d')}: until={until}" if beyond else ""


def _why(name: str, result: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """Say why a run that went through all stages lacks the metric ``name``."""
    hardware, target = config.get("hardware", {}), config.get("target", {})
    if name == "model":
        return _withheld(result, hardware)
    if name.startswith("wear_years"):
        return _unworn(result, hardware)
    if name == "accuracy_int":
        if result.get("random_weights"):
            return "random weights, which have learnt nothing"
        return f"no data: data={config.get('data', {}).get('name')} has no labels"
    if "host" in (hardware.get("core"), target.get("name")):
        return "a native program: a computer's memory, cycles and energy are not counted"
    if target.get("dry_run"):
        return "nothing executed: target.dry_run=true"
    if target.get("images") == 0:
        return "nothing executed on the board: target.images=0"
    if name == "energy_uj" and not hardware.get("power", {}).get("active_ma"):
        return f"no current known for {hardware.get('name')}: hardware.power.active_ma is 0"
    if name == "energy_uj" and target.get("name") == "flash":
        return "executed on the board, where no current is measured"
    return "the board's simulator does not count it"


def _withheld(result: Mapping[str, Any], hardware: Mapping[str, Any]) -> str:
    """Say why the network is given to nobody; "" where it is."""
    if result["status"] == "failed":
        return f"the run failed: {result['error']}"
    secret = hardware.get("card", {}).get("security") == "encrypted"
    return "security=encrypted: the C tells the weights" if secret else ""


def _unworn(result: Mapping[str, Any], hardware: Mapping[str, Any]) -> str:
    """Say why no card has years to last."""
    if not hardware.get("card", {}).get("bytes"):
        return f"no card: {hardware.get('name')} has none that could wear"
    if not result.get("wear"):
        return "nothing wears: the plan leaves the card alone"
    return f"unknown how long cells of the card of {hardware.get('name')} last: hardware.card"


def curves(folder: Path) -> Iterator[tuple[str, float, int]]:
    """Yield (metric, value, step) of the tables that training and pruning left in ``folder``.

    The step is the epoch, or the row's number where there are no epochs. MLflow draws what has the
    same word before a slash in one section.
    """
    tables: dict[str, list[dict[str, Any]]] = {}
    if (path := folder / "training.csv").is_file():
        tables["training"] = list(csv.DictReader(path.read_text().splitlines()))
    if (path := folder / "pruning.json").is_file():
        tables |= {PRUNING[name]: rows for name, rows in read_json(path).items()}
    for prefix, rows in tables.items():
        for number, row in enumerate(rows, 0 if prefix == PRUNING["steps"] else 1):
            step = int(row.pop("epoch", number))
            for column, value in row.items():
                with contextlib.suppress(ValueError):
                    yield f"{prefix}/{column}", float(value), step
