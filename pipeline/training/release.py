"""``python -m pipeline.training.release RUN_DIR [NOTE ...]``: release the weights of a run.

RUN_DIR is the workspace of a run of ``train=paper`` or ``train=float``. The test set has decided
nothing before. Notes go into the provenance as they are; each look at the test set does, also those
at weights of the same name that were released before.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import config
from pipeline.artifacts import Arrays, read_json, read_npz, write_json, write_npz
from pipeline.graph.graph import Graph
from pipeline.metrics import SCORE
from pipeline.models.network import Model, loaded
from pipeline.training import examples
from pipeline.training.examples import Examples
from pipeline.training.recipe import ACCURACY_FLOAT
from pipeline.training.released import FOLDER, integers, real, rounded

ENVIRONMENT = ("machine", "processor", "vectors", "python", "numpy", "torch_build")
"""Fields of a run's environment that the last bits of a training depend on, too."""


def accuracy(graph: Graph, data: Arrays, part: str) -> float:
    """Return the accuracy of the integer reference on all images of ``part``."""
    found = graph.evaluate(data[f"{part}_images"].astype(np.int64)).argmax(1)
    return float((found == data[f"{part}_labels"]).mean())


def accuracy_float(model: Model, weights: Arrays, data: Arrays, part: str) -> float:
    """Return the accuracy of the network in float on all images of ``part``."""
    network, images = loaded(model.build(), weights).eval(), Examples.of(data, part)
    return examples.accuracy(network, images.pixels, images.labels)


def release(run: Path, folder: Path = FOLDER, notes: Sequence[str] = ()) -> str:
    """Write NAME.npz and NAME.json into ``folder``; returns NAME: MODEL-DATA, in float with -SEED
    for every seed but 1."""
    cfg = config.load(run / "params.yaml")
    model = config.instantiate(cfg["model"])
    weights, data = read_npz(run / "weights.npz"), read_npz(run / "data" / "dataset.npz")
    name = f"{cfg['model']['name']}-{cfg['data']['name']}"
    if any(each.endswith(".weight_log2") for each in weights):
        graph = config.instantiate(cfg["quantize"]).graph(cfg["model"]["name"], model, weights)
        packed = integers(model, weights)
        parts = {each: accuracy(graph, data, each) for each in ("validation", "test")}
        told = provenance(cfg, weights, run) | {
            "score_validation": float(weights[SCORE]),
            "accuracy_int_validation": parts["validation"],
            "accuracy_int_test": parts["test"],
        }
        looks = [("before quantization", told["accuracy_float"]), ("released", parts["test"])]
    else:
        name += f"-{cfg['seed']}" * (cfg["seed"] != 1)
        packed = rounded(weights)
        parts = {
            each: accuracy_float(model, real(packed), data, each) for each in ("validation", "test")
        }
        told = provenance(cfg, weights, run) | {
            "accuracy_float": parts["test"],
            "accuracy_float_validation": parts["validation"],
        }
        looks = [("released", parts["test"])]
    write_npz(folder / f"{name}.npz", packed)
    write_json(folder / f"{name}.json", told | {
        "images_validation": len(data["validation_labels"]),
        "looks_at_test": [
            *_looks(folder / f"{name}.json"),
            *({"at": at, "accuracy": found} for at, found in looks),
        ],
        "notes": list(notes),
    })  # fmt: skip
    return name


def _looks(before: Path) -> list[dict[str, Any]]:
    """Return the looks at the test set of weights that are replaced now."""
    told: dict[str, Any] = read_json(before) if before.is_file() else {}
    found: list[dict[str, Any]] = told.get("looks_at_test", [])
    return [look | {"at": look["at"].replace("released", "replaced")} for look in found]


def provenance(cfg: dict[str, Any], weights: Arrays, run: Path) -> dict[str, Any]:
    """Collect what was run, on which code, and how long it took."""
    result = read_json(run / "result.json")
    ran_on = read_json(run / "code.json")["environment"]
    return {
        "command": " ".join(("python run.py", *result["overrides"])),
        "seed": cfg["seed"],
        "threads": cfg["threads"],
        "train": {key: value for key, value in cfg["train"].items() if key != "_target_"},
        "commit": ran_on["code_version"][:7],
        "environment": {key: ran_on[key] for key in ENVIRONMENT},
        "wall_seconds": round(result["stages"]["train"]["seconds"]),
        "accuracy_float": float(weights[ACCURACY_FLOAT]),
    }


if __name__ == "__main__":
    print(release(Path(sys.argv[1]), notes=sys.argv[2:]))
