"""Stage quantize: pruned.npz, or the user's file -> graph.json, graph.npz, and float_labels.npz,
what the float network says of the test images."""

from pathlib import Path
from typing import Any

from pipeline import config, passes
from pipeline.artifacts import Arrays, read_npz, write_npz
from pipeline.frames import check
from pipeline.graph.graph import Graph
from pipeline.importers.base import Imported
from stages._main import run

Float = Any
"""What was quantized: a Model, a FloatGraph, or None."""


def main() -> None:
    cfg = config.load()
    model, data = config.instantiate(cfg["model"]), read_npz(Path("data/dataset.npz"))
    method = config.instantiate(cfg["quantize"])
    weights: Arrays = {}
    if isinstance(model, Imported):
        graph, before = imported(model, method, data)
    else:
        weights, before = read_npz(Path("pruned.npz")), model
        graph = method.graph(cfg["model"]["name"], model, weights, data)
    graph = passes.applied(graph, cfg["passes"])
    check(graph, data)
    graph.save(Path())
    images, found = data["test_images"], {}
    if before is not None and len(images) and "random_weights" not in weights:
        found["labels"] = method.float_labels(before, weights, images, graph.macs)
    write_npz(Path("float_labels.npz"), found)


def imported(model: Imported, method: Any, data: Arrays) -> tuple[Graph, Float]:
    """What is in the user's file, quantized here where that is still to be done."""
    network = model.float_graph()
    if network is None:
        return model.graph(), None
    return method.from_float(network, data), network


if __name__ == "__main__":
    run(main)
