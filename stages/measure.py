"""Stage measure: everything before it -> metrics.json and report.html."""

from pathlib import Path

from pipeline import board, config, frames
from pipeline.artifacts import read_json, read_npz, write_json
from pipeline.frontends.realtime import realtime
from pipeline.graph.graph import Graph
from pipeline.machine.said import said
from pipeline.measure import float_network, metrics, provenance, warnings
from pipeline.plan import serialize
from pipeline.plan.cost import cost
from pipeline.plan.fit import roomy
from pipeline.plan.proof import proved
from pipeline.quantize.errors import worst
from pipeline.quantize.samples import test_frames
from pipeline.report import page
from pipeline.report.images import predictions
from pipeline.sliding import Windows
from pipeline.timing.counted import latency
from stages._main import Config, stage

WEIGHTS = Path("pruned.npz")


@stage
def main(cfg: Config) -> None:
    graph, plan = Graph.load(Path()), serialize.load(Path("plan.json"))
    hardware, windows = board.hardware(cfg["hardware"]), Windows(**cfg["sliding"])
    names = ("schedule", "size", "device", "passes")
    schedule, size, device, passes = (read_json(Path(f"{name}.json")) for name in names)
    frontend = config.instantiate(cfg["frontend"])
    data = windows.data(read_npz(Path("data/dataset.npz")), frontend, graph)
    images, labels = test_frames(graph, data, cfg["target"]), data["test_labels"]
    labels = labels if len(graph.outputs) == 1 else labels[:0]  # of several none is the label's
    outputs, says = read_npz(Path("outputs.npz")), read_npz(Path("float_labels.npz"))
    host, weights = outputs["host_outputs"], read_npz(WEIGHTS) if WEIGHTS.exists() else {}
    found = metrics(
        graph, plan, hardware, schedule=schedule, size=size, device=device, outputs=outputs,
        images=images, labels=labels,
    )  # fmt: skip
    found |= realtime(found, data.get("test_sounds"))
    found |= latency(plan, graph, hardware, device)
    found |= said(read_json(Path("machine_proof.json")))
    if windows.rows:
        found["macs_window"] = passes[-1]["macs"]
    elif "labels" in says:
        found |= float_network(graph, host, says["labels"], labels)
    if "accuracy_float" in weights:  # of networks that were trained here
        found["accuracy_float"] = float(weights["accuracy_float"])
    predicted = None
    if "random_weights" in weights:
        found["random_weights"] = True
    else:
        predicted = predictions(frames.answers(graph, host), labels, data["test_images"])
    found |= warnings(found, labels)
    costs = cost(roomy(plan), graph, hardware, proved(Path("proof.json"), plan, graph))
    origin = provenance(cfg, graph, plan, size)
    file = Path("report.html")
    page.write(
        file, graph, plan, hardware, costs, schedule,
        metrics=found, provenance=origin, passes=passes, predictions=predicted,
        quantized=worst(Path("quantization.csv").read_text()),
    )  # fmt: skip
    write_json(Path("metrics.json"), found)
