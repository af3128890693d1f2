"""Stage prune: weights.npz -> pruned.npz (the same bytes when nothing is pruned); pruning.csv has
the layers, pruning_steps.csv what each step needed, pruning_epochs.csv the epochs."""

from pathlib import Path

from pipeline import config
from pipeline.artifacts import link_npz, read_npz, write_npz, write_text
from pipeline.pruning.method import Pruned, steps_to_csv, to_csv
from stages._main import Config, stage


@stage
def main(cfg: Config) -> None:
    method = config.instantiate(cfg["prune"])
    before, after = Path("weights.npz"), Path("pruned.npz")
    if method.changes:
        from pipeline.training import loop  # imports PyTorch, which takes a second
        from pipeline.training.environment import Run

        model, data = config.instantiate(cfg["model"]), read_npz(Path("data/dataset.npz"))
        settings = Run.from_environment(cfg["seed"], cfg["threads"])
        pruned = method.prune(model, read_npz(before), data, settings)
        write_npz(after, pruned.weights)
        epochs = loop.to_csv(pruned.epochs)
    else:
        link_npz(before, after)
        pruned, epochs = Pruned({}, []), "epoch,phase,loss,validation_accuracy\n"
    write_text(Path("pruning.csv"), to_csv(pruned.rows))
    write_text(Path("pruning_steps.csv"), steps_to_csv(pruned.steps))
    write_text(Path("pruning_epochs.csv"), epochs)
