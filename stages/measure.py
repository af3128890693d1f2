"""Stage measure: everything before it -> metrics.json and report.html."""

from pathlib import Path

import numpy as np

from pipeline import artifacts, board, config
from pipeline.frontends.realtime import realtime
from pipeline.graph.graph import Graph
from pipeline.measure import float_network, metrics, provenance, warnings
from pipeline.plan import serialize
from pipeline.plan.cost import cost
from pipeline.plan.fit import roomy
from pipeline.plan.proof import proved
from pipeline.report import page
from pipeline.report.images import answers
from pipeline.schedules.sliding import kept_bytes
from pipeline.sliding import Windows
from pipeline.timing.counted import latency
from stages._frames import of_windows, test_frames
from stages._main import run

WEIGHTS = Path("pruned.npz")


def main() -> None:
    cfg = config.load()
    graph, plan = Graph.load(Path()), serialize.load(Path("plan.json"))
    hardware = board.hardware(cfg["hardware"])
    reports = {
        name: artifacts.read_json(Path(f"{name}.json"))
        for name in ("schedule", "size", "device", "passes")
    }
    data = of_windows(cfg, artifacts.read_npz(Path("data/dataset.npz")))
    outputs = artifacts.read_npz(Path("outputs.npz"))
    passes = reports.pop("passes")
    found = metrics(
        graph, plan, hardware, **reports, outputs=outputs,
        images=test_frames(graph, data, cfg["target"]), labels=data["test_labels"],
    )  # fmt: skip
    weights = artifacts.read_npz(WEIGHTS) if WEIGHTS.exists() else {}
    says = artifacts.read_npz(Path("float_labels.npz")).get("labels", data["test_labels"][:0])
    found |= realtime(found, data.get("test_sounds"))
    windows, row_us = Windows(**cfg["sliding"]), config.instantiate(cfg["frontend"]).row_us
    found |= windows.measured(
        reports["device"], graph.macs, passes[-1]["macs"], row_us, hardware.clock_hz
    )
    if windows.windows > 1:
        says = says[:0]
        found["kept_bytes"] = kept_bytes(graph, windows.windows)
    found |= latency(plan, graph, hardware, reports["device"])
    found |= float_network(graph, outputs["host_outputs"], says, data["test_labels"])
    if "accuracy_float" in weights:  # of networks that were trained here
        found["accuracy_float"] = float(weights["accuracy_float"])
    found |= {"random_weights": True} if "random_weights" in weights else {}
    found |= warnings(found, data["test_labels"])
    costs = cost(roomy(plan), graph, hardware, proved(Path("proof.json"), plan, graph))
    origin = provenance(cfg, graph, plan, reports["size"])
    said = outputs["host_outputs"].view(np.dtype(str(graph.tensors[graph.output].dtype)))
    answered = None
    if "random_weights" not in found and windows.windows == 1:
        answered = answers(said, data["test_labels"], data["test_images"])
    page.write(
        Path("report.html"), graph, plan, hardware, costs, reports["schedule"], found, origin,
        passes, answered,
    )  # fmt: skip
    artifacts.write_json(Path("metrics.json"), found)


if __name__ == "__main__":
    run(main)
