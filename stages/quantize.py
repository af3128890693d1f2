"""Stage quantize: pruned.npz, or the user's file -> graph.json, graph.npz, passes.json, what
each lossless pass left of it, and float_labels.npz, what the float network says of the test
images."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline import config, passes
from pipeline.artifacts import Arrays, read_npz, write_json, write_npz
from pipeline.datasets.dataset import seen
from pipeline.errors import reading
from pipeline.frames import check
from pipeline.graph.graph import Graph
from pipeline.importers.base import Imported
from pipeline.sliding import Windows
from stages._main import run

Float = Any
"""What was quantized: a Model, a FloatGraph, or None."""


def main() -> None:
    cfg = config.load()
    model, data = config.instantiate(cfg["model"]), read_npz(Path("data/dataset.npz"))
    weights: Arrays = {}
    if isinstance(model, Imported):
        with reading():
            method, before, made = imported(cfg, model, seen(data))
    else:
        weights, before = read_npz(Path("pruned.npz")), model
        method = config.instantiate(cfg["quantize"])
        if "float_graph" in weights:
            from pipeline.pruning import stored  # imports PyTorch, which takes a second

            before = replace(stored.from_arrays(weights), name=cfg["model"]["name"])
            made = method.from_float(before, seen(data))
        else:
            made = method.graph(cfg["model"]["name"], model, weights, seen(data))
    check(made, data)  # a pass may give the input another shape
    sizes = []
    for name, graph in passes.one_by_one(made, cfg["passes"]):
        sizes.append({"pass": name, **passes.size(graph)})
    Windows(**cfg["sliding"]).graph(graph).save(Path())
    write_json(Path("passes.json"), sizes)
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
