"""Stage train: model, data -> weights.npz, training.csv."""

from pathlib import Path

from pipeline import config
from pipeline.artifacts import read_npz, write_npz, write_text
from pipeline.errors import reading
from pipeline.training.environment import Run
from pipeline.training.loop import to_csv
from stages._main import Config, stage


@stage
def main(cfg: Config) -> None:
    recipe = config.instantiate(cfg["train"])
    data = read_npz(Path("data/dataset.npz")) if recipe.needs_data else {}
    with reading():
        model = config.instantiate(cfg["model"])
        model.probe()
    trained = recipe.train(model, data, Run.from_environment(cfg["seed"], cfg["threads"]))
    write_npz(Path("weights.npz"), trained.weights)
    write_text(Path("training.csv"), to_csv(trained.rows))
