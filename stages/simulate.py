"""Stage simulate: the graph, build/, size.json, test images -> device.json and outputs.npz."""

from pathlib import Path

from pipeline import artifacts, board, config
from pipeline.graph.graph import Graph
from pipeline.targets import device
from stages._frames import device_frames, first_bytes, of_windows
from stages._main import run


def main() -> None:
    cfg = config.load()
    size = artifacts.read_json(Path("size.json"))
    data = of_windows(cfg, artifacts.read_npz(Path("data/dataset.npz")))
    graph = Graph.load(Path())
    report, arrays = device.measure(
        cfg["target"],
        Path("build"),
        size,
        board.hardware(cfg["hardware"]),
        device_frames(graph, data, cfg["target"]),
        [op.name for op in graph.operators],
        first_bytes(cfg, data),
    )
    artifacts.write_npz(Path("outputs.npz"), arrays)
    artifacts.write_json(Path("device.json"), report)


if __name__ == "__main__":
    run(main)
