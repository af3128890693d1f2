"""Collect what a run has given so far: the object of ``output=json`` and of ``result.json``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.artifacts import read_json

SOURCES = (
    *("schedule.json", "size.json", "device.json", "machine_proof.json", "metrics.json"),
    "package.json",
)
"""Files that stages report in, in the order of the stages: a later value of a metric replaces an
earlier one, so that a planned number makes way for the measured one."""

TABLES = (
    *("auto", "flasher", "forms", "layers", "memories"),
    *("package", "states_us", "trade", "traffic", "warnings"),
)
"""Keys of a run's result that are no number or word; the other lists are for pages."""

INFEASIBLE = ("resource", "where", "needed_bytes", "available_bytes", "advice")

ROW = ("name", "metric", "paper", "layer", "of")

EXIT = {"ok": 0, "failed": 1, "infeasible": 3}
INTERRUPTED = "interrupted"
"""The ``error`` of a failed run that Ctrl-C ended."""


def exit_code(result: Mapping[str, Any]) -> int:
    """Return the process's exit code; 0 for a replay that agrees, whatever the run's own was."""
    if result.get("replay", {}).get("agrees"):
        return 0
    return 130 if result.get("error") == INTERRUPTED else EXIT[result["status"]]


def reports(folder: Path) -> dict[str, Any]:
    """The stages' reports in ``folder``, merged; empty before the first stage that makes one."""
    merged: dict[str, Any] = {}
    for name in SOURCES:
        if (folder / name).is_file():
            merged.update(read_json(folder / name))
    return merged


def known(folder: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """Metrics and status after the stages that have run in ``folder`` with ``config``."""
    merged = reports(folder)
    status, hardware = merged.get("status", "ok"), config["hardware"]
    result = {
        name: value
        for name, value in merged.items()
        if (name in TABLES or not isinstance(value, list | dict))
        and (name not in INFEASIBLE or status == "infeasible")
    }
    result |= {
        "status": status,
        "run_dir": str(folder),
        "sram_limit_bytes": hardware["sram_bytes"],
        "flash_limit_bytes": hardware["flash_bytes"],
        **{g: config[g]["name"] for g in ("model", "data", "hardware", "strategy", "target")},
    }
    if merged:
        result["fits"] = status != "infeasible"
    if merged.get("stack_bound_bytes") == 0:  # natively: statics without a stack are no SRAM
        result.pop("sram_bytes", None)
    if config.get("paper"):
        result["rows"] = rows(config["paper"], merged | result, config)
        if unknown := unpublished(config["paper"]):
            result["unpublished"] = unknown
    return result


def rows(
    paper: list[Mapping[str, Any]], result: Mapping[str, Any], config: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return a published table's numbers beside ours: {name, metric, paper, ours}.

    ``paper`` is None for a figure of ours that has no published one beside it. Any other key of a
    row is one of the config, such as ``strategy`` or ``model.input_shape``: the row is for the jobs
    that have its value. A row without a metric is of a network that nobody else can build. With
    ``layer`` the figure is that layer's, ``*`` makes a row of each, with its name behind; with
    ``of`` it follows from other published figures.
    """
    layers = {layer["layer"]: layer for layer in result.get("traffic", ())}
    found = []
    for row in paper:
        if "metric" not in row or any(_value(config, k) != row[k] for k in row if k not in ROW):
            continue
        every, called = row.get("layer") == "*", row.get("name", result["strategy"])
        for layer in layers if every else [row.get("layer")]:
            figures = layers.get(layer, {}) if layer else result
            ours = figures.get(row["metric"])
            if "of" in row:
                from pipeline.timing.claims import claim

                ours = claim(row["metric"], row["of"])
            name = f"{called} {layer}" if every else called
            about = {"metric": row["metric"], "paper": row.get("paper")}
            found.append({"name": name, **about, "ours": ours})
    return found


def unpublished(paper: list[Mapping[str, Any]]) -> list[str]:
    """The rows of a published table whose networks are not published: what they are and say."""
    return [f"{row['name']}: {row['paper']}" for row in paper if "metric" not in row]


def _value(config: Mapping[str, Any], key: str) -> Any:
    """``config``'s value of a dotted key, of a group the name of its option; None without one."""
    found: Any = config
    for part in key.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found.get("name") if isinstance(found, Mapping) else found
