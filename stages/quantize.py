"""Stage quantize: pruned.npz, or the user's file -> graph.json, graph.npz."""

from pathlib import Path
from typing import Any

from pipeline import config, passes
from pipeline.artifacts import read_npz
from pipeline.graph.graph import Graph
from pipeline.importers.base import Imported
from stages._main import run


def main() -> None:
    cfg = config.load()
    model = config.instantiate(cfg["model"])
    graph = imported(cfg, model) if isinstance(model, Imported) else quantized(cfg, model)
    passes.applied(graph, cfg["passes"]).save(Path())


def imported(cfg: dict[str, Any], model: Imported) -> Graph:
    """What is in the user's file, quantized here where that is still to be done."""
    network = model.float_graph()
    if network is None:
        return model.graph()
    method = config.instantiate(cfg["quantize"])
    graph: Graph = method.from_float(network, read_npz(Path("data/dataset.npz")))
    return graph


def quantized(cfg: dict[str, Any], model: Any) -> Graph:
    """The project's own and PyTorch's networks, with the weights of the stages before."""
    method = config.instantiate(cfg["quantize"])
    data = read_npz(Path("data/dataset.npz")) if method.needs_data else None
    weights = read_npz(Path("pruned.npz"))
    graph: Graph = method.graph(cfg["model"]["name"], model, weights, data)
    return graph


if __name__ == "__main__":
    run(main)
