"""Stage prune: weights.npz -> pruned.npz (the same bytes when nothing is pruned); pruning.csv has
the layers, pruning_steps.csv what each step needed, pruning_epochs.csv the epochs."""

from pathlib import Path

from pipeline import config
from pipeline.artifacts import link_npz, read_npz, write_npz, write_text
from pipeline.pruning.method import Pruned, steps_to_csv, to_csv
from stages._main import run


def main() -> None:
    cfg = config.load()
    method = config.instantiate(cfg["prune"])
    if not method.changes:
        link_npz(Path("weights.npz"), Path("pruned.npz"))
        tables(Pruned({}, []), "epoch,phase,loss,validation_accuracy\n")
        return
    from pipeline.training import loop  # imports PyTorch, which takes a second
    from pipeline.training.environment import Run

    weights = read_npz(Path("weights.npz"))
    settings = Run.from_environment(cfg["seed"], cfg["threads"])
    data = read_npz(Path("data/dataset.npz"))
    pruned = method.prune(config.instantiate(cfg["model"]), weights, data, settings)
    write_npz(Path("pruned.npz"), pruned.weights)
    tables(pruned, loop.to_csv(pruned.epochs))


def tables(pruned: Pruned, epochs: str) -> None:
    write_text(Path("pruning.csv"), to_csv(pruned.rows))
    write_text(Path("pruning_steps.csv"), steps_to_csv(pruned.steps))
    write_text(Path("pruning_epochs.csv"), epochs)


if __name__ == "__main__":
    run(main)
