"""Stage generate: graph and plan -> generated/, self-contained C for the board and the host, and an
image for the card that the plan swaps with, if it does."""

import hashlib
import json
import shutil
from pathlib import Path

from pipeline import artifacts, board, config
from pipeline.codegen import generate
from pipeline.codegen.card import sealed
from pipeline.codegen.options import Options
from pipeline.frontends.frontend import Frontend
from pipeline.graph.graph import Graph
from pipeline.plan import proof, serialize
from pipeline.sliding import Windows
from pipeline.targets.harness import harness_sources
from stages._main import Config, stage

OUTPUT = Path("generated")


@stage
def main(cfg: Config) -> None:
    graph, plan = Graph.load(Path()), serialize.load(Path("plan.json"))
    hardware = board.hardware(cfg["hardware"])
    proof.proved(Path("proof.json"), plan, graph)  # the file may have been edited
    # what of the config reaches the C beside graph and plan
    chosen = {key: cfg["hardware"][key] for key in ("name", "core", "weights_in")}
    settings = hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()[:16]
    provenance = {"graph": graph.hash, "plan": serialize.plan_hash(plan), "config": settings}
    options = Options(cfg["codegen"]["prefix"], tuple(cfg["codegen"]["labels"]))
    ear = Windows(**cfg["sliding"]).frontend(config.instantiate(cfg["frontend"]))
    listens = ear if isinstance(ear, Frontend) else None
    files = generate(graph, plan, hardware, provenance, options, listens)
    files = {**files, **harness_sources(hardware, swaps=bool(plan.on_card))}
    shutil.rmtree(OUTPUT, ignore_errors=True)
    for name, content in options.names.files(files).items():
        artifacts.write_text(OUTPUT / name, content)
    if plan.on_card:
        sealed.write(graph, plan, hardware, OUTPUT)
