"""Stage simulate: the graph, build/, size.json, test images -> device.json and outputs.npz."""

from pathlib import Path

import numpy as np

from pipeline import artifacts, board, config
from pipeline.graph.graph import Graph
from pipeline.targets import device
from stages._frames import test_frames
from stages._main import run


def main() -> None:
    cfg = config.load()
    size = artifacts.read_json(Path("size.json"))
    data = artifacts.read_npz(Path("data/dataset.npz"))
    graph = Graph.load(Path())
    frames = test_frames(graph, data, cfg["target"])
    report, arrays = device.measure(
        cfg["target"],
        Path("build"),
        size,
        board.hardware(cfg["hardware"]),
        np.ascontiguousarray(frames).view(np.uint8),
        [op.name for op in graph.operators],
    )
    artifacts.write_npz(Path("outputs.npz"), arrays)
    artifacts.write_json(Path("device.json"), report)


if __name__ == "__main__":
    run(main)
