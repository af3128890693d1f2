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
    weights: Arrays = {}
    if isinstance(model, Imported):
        method, before, graph = imported(cfg, model, data)
    else:
        weights, before = read_npz(Path("pruned.npz")), model
        method = config.instantiate(cfg["quantize"])
        graph = method.graph(cfg["model"]["name"], model, weights, data)
    graph = passes.applied(graph, cfg["passes"])
    check(graph, data)
    graph.save(Path())
    images, found = data["test_images"], {}
    if before is not None and len(images) and "random_weights" not in weights:
        found["labels"] = method.float_labels(before, weights, images, graph.macs)
    write_npz(Path("float_labels.npz"), found)


def imported(cfg: dict[str, Any], model: Imported, data: Arrays) -> tuple[Any, Float, Graph]:
    """What is in the user's file, quantized here where that is still to be done, and by what."""
    network = model.float_graph()
    if network is None:  # then PyTorch, whose import takes a second, is not needed
        return None, None, model.graph()
    method = config.instantiate(cfg["quantize"])
    return method, network, method.from_float(network, data)


if __name__ == "__main__":
    run(main)
