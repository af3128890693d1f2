"""Stage prune: weights.npz -> pruned.npz (the same bytes when nothing is pruned) and pruning.json,
which has the layers that got smaller, what each step needed, and the epochs."""

from pathlib import Path

from pipeline import config
from pipeline.artifacts import link_npz, read_npz, write_json, write_npz
from pipeline.pruning.method import Pruned
from stages._main import Config, stage


@stage
def main(cfg: Config) -> None:
    method = config.instantiate(cfg["prune"])
    before, after = Path("weights.npz"), Path("pruned.npz")
    pruned = Pruned({}, [])
    if method.changes:
        from pipeline.training.environment import Run  # imports PyTorch, which takes a second

        model, data = config.instantiate(cfg["model"]), read_npz(Path("data/dataset.npz"))
        settings = Run.from_environment(cfg["seed"], cfg["threads"])
        pruned = method.prune(model, read_npz(before), data, settings)
        write_npz(after, pruned.weights)
    else:
        link_npz(before, after)
    write_json(Path("pruning.json"), pruned.tables)
