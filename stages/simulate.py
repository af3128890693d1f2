"""Stage simulate: graph and plan, build/, size.json, test images -> device.json and outputs.npz."""

from pathlib import Path

import numpy as np

from pipeline import artifacts, board, config
from pipeline.frames import fed
from pipeline.graph.graph import Graph
from pipeline.plan import serialize
from pipeline.quantize.samples import test_frames
from pipeline.sliding import Windows
from pipeline.targets import device, stepped
from stages._main import Config, stage


@stage
def main(cfg: Config) -> None:
    windows, frontend = Windows(**cfg["sliding"]), config.instantiate(cfg["frontend"])
    size, graph = artifacts.read_json(Path("size.json")), Graph.load(Path())
    data = windows.data(artifacts.read_npz(Path("data/dataset.npz")), frontend, graph)
    if "test_sounds" in data:  # the device has the front end
        frames = data["test_sounds"].astype("<i2")
    else:
        frames = fed(graph, test_frames(graph, data, cfg["target"]))
    images = np.ascontiguousarray(frames).view(np.uint8)
    hardware, layers = board.hardware(cfg["hardware"]), [op.name for op in graph.operators]
    report, arrays = device.measure(cfg["target"], Path("build"), size, hardware, images, layers)
    if cfg["target"]["check"] == "layers":
        some = test_frames(graph, data, cfg["target"])[: cfg["target"]["images"]].astype(np.int64)
        plan, name = serialize.load(Path("plan.json")), cfg["target"]["name"]
        report["checked_elements"] = stepped.check(graph, plan, hardware, some, name)
    artifacts.write_npz(Path("outputs.npz"), arrays)
    artifacts.write_json(Path("device.json"), report)
