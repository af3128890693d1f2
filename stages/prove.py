"""Stage prove: graph and plan, build/, generated/, size.json, device.json -> machine_proof.json:
what one traced inference says of every input."""

from pathlib import Path

from pipeline import board
from pipeline.artifacts import read_json, write_json
from pipeline.graph.graph import Graph
from pipeline.machine import said
from pipeline.plan import serialize
from stages._main import Config, stage


@stage
def main(cfg: Config) -> None:
    hardware, plan = board.hardware(cfg["hardware"]), serialize.load(Path("plan.json"))
    size, device = (read_json(Path(f"{name}.json")) for name in ("size", "device"))
    if reason := said.uncovered(plan, hardware, cfg["target"]["name"]):
        found = said.none(reason)
    else:
        from pipeline.machine.proof import proof  # imports capstone, which others need not have

        found = proof(
            Path("build"), size, hardware, plan, Graph.load(Path()), Path("generated"), device
        )
    write_json(Path("machine_proof.json"), found)
