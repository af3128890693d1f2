"""Stage prune: weights.npz -> pruned.npz (the same bytes when nothing is pruned), pruning.csv."""

from pathlib import Path

from pipeline import config
from pipeline.artifacts import link_npz, read_npz, write_npz, write_text
from pipeline.pruning.method import to_csv
from stages._main import run


def main() -> None:
    cfg = config.load()
    method = config.instantiate(cfg["prune"])
    if not method.changes:
        link_npz(Path("weights.npz"), Path("pruned.npz"))
        write_text(Path("pruning.csv"), to_csv([]))
        return
    from pipeline.training.environment import Run  # imports PyTorch, which takes a second

    weights = read_npz(Path("weights.npz"))
    settings = Run.from_environment(cfg["seed"], cfg["threads"])
    data = read_npz(Path("data/dataset.npz"))
    pruned = method.prune(config.instantiate(cfg["model"]), weights, data, settings)
    write_npz(Path("pruned.npz"), pruned.weights)
    write_text(Path("pruning.csv"), to_csv(pruned.rows))


if __name__ == "__main__":
    run(main)
