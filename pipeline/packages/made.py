"""A package of a run's network, whose weights are where ``package.weights_in`` says, whatever the
run's are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline import board, config
from pipeline.codegen.options import Options
from pipeline.errors import ThimbleError
from pipeline.frontends.frontend import Frontend
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.packages import boards
from pipeline.packages.kinds import KINDS
from pipeline.packages.library import Library, library
from pipeline.plan import proof, serialize
from pipeline.plan.calibrate import needs_calibration
from pipeline.plan.vocabulary import Plan
from pipeline.sliding import Windows

Config = Mapping[str, Any]


def write(cfg: Config, folder: Path) -> dict[str, Any]:
    """Write the package into ``folder``; return what package.json says of it."""
    name, wanted = cfg["package"]["name"], cfg["package"]["weights_in"]
    kind, own = KINDS[name], board.hardware(cfg["hardware"])
    boards.check(name, own.name, own.platformio)
    chosen, other = _library(cfg, replace(own, weights_in=wanted), kind.level), None
    if wanted == "sram" and own.core == "avr":
        other = _library(cfg, replace(own, weights_in="flash"), kind.level)
    written = kind.make(chosen).write(folder)
    return {"kind": name, "file": str(written), "note": kind.note(chosen, other)}


def _library(cfg: Config, hardware: Hardware, level: str) -> Library:
    graph, about = Graph.load(Path()), cfg["package"]
    plan = _plan(cfg, graph, hardware)
    provenance = {"graph": graph.hash, "plan": serialize.plan_hash(plan)}
    options = Options(cfg["codegen"]["prefix"], tuple(cfg["codegen"]["labels"]))
    name = about["library"] or graph.name
    ear = Windows(**cfg["sliding"]).frontend(config.instantiate(cfg["frontend"]))
    return library(
        graph, plan, hardware, provenance, options, name=name, version=about["version"],
        level=level, frontend=ear if isinstance(ear, Frontend) else None,
    )  # fmt: skip


def _plan(cfg: Config, graph: Graph, hardware: Hardware) -> Plan:
    """The run's own, or where the package has its weights elsewhere another one, proved like it."""
    if hardware.weights_in == cfg["hardware"]["weights_in"]:
        own = serialize.load(Path("plan.json"))
        proof.proved(Path("proof.json"), own, graph)
        return own
    plan: Plan = config.instantiate(cfg["strategy"]).plan(graph, hardware)
    if needs_calibration(plan):
        raise ThimbleError(
            "package.weights_in is not the run's, and the plan has sums that were calibrated for "
            f"it: add hardware.weights_in={hardware.weights_in}"
        )
    proof.prove(plan, graph)
    return plan
