"""Stage simulate: the graph, build/, size.json, test images -> device.json and outputs.npz."""

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline import artifacts, board, config
from pipeline.artifacts import Arrays
from pipeline.graph.graph import Graph
from pipeline.sliding import Windows
from pipeline.targets import device
from stages._frames import of_windows, test_frames
from stages._main import Config, stage


def device_frames(graph: Graph, data: Arrays, target: Mapping[str, Any]) -> npt.NDArray[np.uint8]:
    """What the firmware is given for each of the test images, (n, bytes) or (n, h, w, c): their
    sounds, where a front end is before the network."""
    heard = "test_sounds" in data
    frames = data["test_sounds"].astype("<i2") if heard else test_frames(graph, data, target)
    return np.ascontiguousarray(frames).view(np.uint8)


def first_bytes(cfg: Mapping[str, Any], data: Arrays) -> int:
    """What has come when the first of several windows is whole; 0 where there is one."""
    windows = Windows(**cfg["sliding"])
    if windows.windows == 1:
        return 0
    if "test_sounds" in data:
        return 2 * int(config.instantiate(cfg["frontend"]).samples)
    rows, *others = data["test_images"].shape[1:]
    return (rows - windows.more) * prod(others)


@stage
def main(cfg: Config) -> None:
    size, graph = artifacts.read_json(Path("size.json")), Graph.load(Path())
    data = of_windows(cfg, artifacts.read_npz(Path("data/dataset.npz")))
    images = device_frames(graph, data, cfg["target"])
    layers = [op.name for op in graph.operators]
    hardware = board.hardware(cfg["hardware"])
    report, arrays = device.measure(
        cfg["target"], Path("build"), size, hardware, images, layers, first_bytes(cfg, data)
    )
    artifacts.write_npz(Path("outputs.npz"), arrays)
    artifacts.write_json(Path("device.json"), report)
