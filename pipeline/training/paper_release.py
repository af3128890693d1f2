"""``python -m pipeline.training.paper_release RUN_DIR [NOTE ...]``: release the weights of a run.

RUN_DIR is the workspace of a ``train=paper`` run. The test set has decided nothing before. Notes go
into the provenance as they are; each look at the test set does, also those at weights of the same
name that were released before.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from pipeline import config
from pipeline.artifacts import Arrays, read_json, read_npz, write_json, write_npz
from pipeline.graph.graph import Graph
from pipeline.metrics import SCORE
from pipeline.training.recipe import ACCURACY_FLOAT
from pipeline.training.released import FOLDER, integers

ENVIRONMENT = ("machine", "processor", "vectors", "python", "numpy", "torch_build")
"""What else the last bits of a training depend on."""


def accuracy(graph: Graph, data: Arrays, part: str) -> float:
    """Of the integer reference on all images of ``part``."""
    found = graph.outputs(data[f"{part}_images"].astype(np.int64)).argmax(1)
    return float((found == data[f"{part}_labels"]).mean())


def release(run: Path, folder: Path = FOLDER, notes: Sequence[str] = ()) -> str:
    """Write NAME.npz and NAME.json into ``folder``; returns NAME."""
    cfg = config.load(run / "params.yaml")
    model = config.instantiate(cfg["model"])
    weights, data = read_npz(run / "weights.npz"), read_npz(run / "data" / "dataset.npz")
    graph = config.instantiate(cfg["quantize"]).graph(cfg["model"]["name"], model, weights)
    name = f"{cfg['model']['name']}-{cfg['data']['name']}"
    told = provenance(cfg, weights, run)
    test = accuracy(graph, data, "test")
    write_npz(folder / f"{name}.npz", integers(model, weights))
    write_json(folder / f"{name}.json", told | {
        "accuracy_int_validation": accuracy(graph, data, "validation"),
        "accuracy_int_test": test,
        "images_validation": len(data["validation_labels"]),
        "looks_at_test": [
            *_looks(folder / f"{name}.json"),
            {"at": "before quantization", "accuracy": told["accuracy_float"]},
            {"at": "released", "accuracy": test},
        ],
        "notes": list(notes),
    })  # fmt: skip
    return name


def _looks(before: Path) -> list[dict[str, Any]]:
    """At weights that are replaced now."""
    told: dict[str, Any] = read_json(before) if before.is_file() else {}
    found: list[dict[str, Any]] = told.get("looks_at_test", [])
    return [look | {"at": look["at"].replace("released", "replaced")} for look in found]


def provenance(cfg: dict[str, Any], weights: Arrays, run: Path) -> dict[str, Any]:
    """What was run, on which code, and how long it took."""
    overrides = yaml.safe_load((run / ".hydra" / "overrides.yaml").read_text())
    ran_on = read_json(run / "environment.json")
    return {
        "command": " ".join(("python run.py", *overrides)),
        "seed": cfg["seed"],
        "threads": cfg["threads"],
        "train": {key: value for key, value in cfg["train"].items() if key != "_target_"},
        "commit": ran_on["code_version"][:7],
        "environment": {key: ran_on[key] for key in ENVIRONMENT},
        "wall_seconds": round(read_json(run / ".stages" / "train.json")["seconds"]),
        "accuracy_float": float(weights[ACCURACY_FLOAT]),
        "score_validation": float(weights[SCORE]),
    }


if __name__ == "__main__":
    print(release(Path(sys.argv[1]), notes=sys.argv[2:]))
