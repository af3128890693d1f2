"""Stage quantize: pruned.npz -> graph.json, graph.npz."""

from pathlib import Path

from pipeline import config
from pipeline.artifacts import read_npz
from stages._main import run


def main() -> None:
    cfg = config.load()
    method = config.instantiate(cfg["quantize"])
    model = config.instantiate(cfg["model"])
    graph = method.graph(cfg["model"]["name"], model, read_npz(Path("pruned.npz")))
    graph.save(Path())


if __name__ == "__main__":
    run(main)
