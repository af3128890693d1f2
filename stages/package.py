"""Stage package: the graph and its plan -> package/, a library for what the config names, and
package.json. Its weights are where ``package.weights_in`` says, whatever the run's are."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline import artifacts, board, config
from pipeline.codegen.options import Options
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.packages import boards
from pipeline.packages.kinds import KINDS, NONE
from pipeline.packages.library import Library, library
from pipeline.plan import proof, serialize
from pipeline.plan.calibrate import needs_calibration
from pipeline.plan.vocabulary import Plan
from stages._main import run

OUTPUT = Path("package")


def main() -> None:
    cfg = config.load()
    shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir()
    name = cfg["package"]["name"]
    if name == NONE:
        artifacts.write_json(Path("package.json"), {})
        return
    kind, own = KINDS[name], board.hardware(cfg["hardware"])
    boards.check(name, own.name, own.core, own.platformio)
    graph = Graph.load(Path())
    wanted = cfg["package"]["weights_in"]
    chosen = _library(cfg, graph, replace(own, weights_in=wanted), kind.level)
    other = None
    if wanted == "sram" and own.core == "avr":
        other = _library(cfg, graph, replace(own, weights_in="flash"), kind.level)
    made = kind.make(chosen)
    written = made.write(OUTPUT)
    said = {"kind": name, "file": str(written), "note": kind.note(chosen, other)}
    artifacts.write_json(Path("package.json"), {"package": said})


def _library(cfg: dict[str, Any], graph: Graph, hardware: Hardware, level: str) -> Library:
    plan = _plan(cfg, graph, hardware)
    provenance = {"graph": graph.hash, "plan": serialize.plan_hash(plan)}
    options = Options(cfg["codegen"]["prefix"], tuple(cfg["codegen"]["labels"]))
    about = cfg["package"]["library"] or graph.name, cfg["package"]["version"]
    return library(graph, plan, hardware, provenance, options, *about, level)


def _plan(cfg: dict[str, Any], graph: Graph, hardware: Hardware) -> Plan:
    """The run's own, or where the package has its weights elsewhere another one, proved like it."""
    if hardware.weights_in == cfg["hardware"]["weights_in"]:
        plan = serialize.load(Path("plan.json"))
        proof.proved(Path("proof.json"), plan, graph)
        return plan
    plan = config.instantiate(cfg["strategy"]).plan(graph, hardware)
    if needs_calibration(plan):
        raise ThimbleError(
            "package.weights_in is not the run's, and the plan has sums that were calibrated for "
            f"it: add hardware.weights_in={hardware.weights_in}"
        )
    proof.prove(plan, graph)
    return plan


if __name__ == "__main__":
    run(main)
