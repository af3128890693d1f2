"""Stage quantize: pruned.npz, or the user's file -> graph.json, graph.npz, passes.json, what
each lossless pass left of it, quantization.csv, the error of each tensor, and float_labels.npz,
what the float network says of the test images."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline import config, passes
from pipeline.artifacts import Arrays, read_npz, write_json, write_npz, write_text
from pipeline.datasets.dataset import seen
from pipeline.errors import reading
from pipeline.frames import check, raw_only
from pipeline.graph.graph import Graph
from pipeline.importers.base import Imported
from pipeline.quantize.errors import to_csv
from pipeline.sliding import Windows
from stages._main import Config, stage


def quantized(cfg: Config, model: Any, weights: Arrays, data: Arrays) -> tuple[Graph, Any, Any]:
    """Return the graph, how it was made, and the float network before it: None where the user's
    file holds integers. Then PyTorch, whose import takes a second, is not needed."""
    before = model
    if isinstance(model, Imported):
        before = model.float_graph()
    elif "float_graph" in weights:
        from pipeline.pruning import stored

        before = replace(stored.from_arrays(weights), name=cfg["model"]["name"])
    if before is None:
        return model.graph(), None, None
    raw_only(data)
    method, seen_data = config.instantiate(cfg["quantize"]), seen(data)
    if before is model:
        graph = method.graph(cfg["model"]["name"], model, weights, seen_data)
    else:
        graph = method.from_float(before, seen_data)
    return graph, method, before


@stage
def main(cfg: Config) -> None:
    model, data = config.instantiate(cfg["model"]), read_npz(Path("data/dataset.npz"))
    users = isinstance(model, Imported)
    weights = {} if users else read_npz(Path("pruned.npz"))
    with reading() if users else nullcontext():
        made, method, before = quantized(cfg, model, weights, data)
    check(made, data)  # a pass may give the input another shape
    sizes = []
    for name, graph in passes.one_by_one(made, cfg["passes"]):
        sizes.append({"pass": name, **passes.size(graph)})
    write_json(Path("passes.json"), sizes)
    Windows(**cfg["sliding"]).graph(graph).save(Path())
    images, found, rows = data["test_images"], {}, ""
    if method and "random_weights" not in weights:
        if len(images):
            found["labels"] = method.float_labels(before, weights, images, graph.macs)
        if len(data["train_images"]):
            rows = to_csv(method.errors(before, weights, made, data))
    write_text(Path("quantization.csv"), rows)
    write_npz(Path("float_labels.npz"), found)
