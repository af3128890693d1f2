"""Stage train: model, data -> weights.npz, training.csv."""

from pathlib import Path

from pipeline import config
from pipeline.artifacts import read_npz, write_npz, write_text
from pipeline.errors import reading
from pipeline.training.environment import Run
from pipeline.training.loop import to_csv
from stages._main import run


def main() -> None:
    cfg = config.load()
    recipe = config.instantiate(cfg["train"])
    data = read_npz(Path("data/dataset.npz")) if recipe.needs_data else {}
    settings = Run.from_environment(cfg["seed"], cfg["threads"])
    with reading():
        model = config.instantiate(cfg["model"])
        model.probe()
    trained = recipe.train(model, data, settings)
    write_npz(Path("weights.npz"), trained.weights)
    write_text(Path("training.csv"), to_csv(trained.rows))


if __name__ == "__main__":
    run(main)
