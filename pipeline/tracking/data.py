"""The data set of a run as MLflow's: each part by name, size and hash, and where it is from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
from mlflow.data.numpy_dataset import from_numpy

from pipeline.config import instantiate
from pipeline.tracking.checkout import recorded

PARTS = {"train": "training", "validation": "validation", "test": "testing"}
FILE = "data/dataset.npz"


def log(folder: Path, config: Mapping[str, Any]) -> None:
    """Log the parts with images of what the run in ``folder`` fetched, each with what it is for, as
    inputs of MLflow's active run. All have the hash of the file that has them, as in code.json.
    """
    digest = recorded(folder)["made"].get("fetch", {}).get(FILE)
    if not digest or not (folder / FILE).is_file():
        return
    data = config["data"]
    known = (str(source) for source in getattr(instantiate(data), "sources", ()))
    source: Any = data.get("path") or next((url for url in known if url.startswith("http")), None)
    with np.load(folder / FILE, allow_pickle=False) as arrays:
        for part, context in PARTS.items():
            images, labels = arrays[f"{part}_images"], arrays[f"{part}_labels"]
            targets: Any = labels if len(labels) else None
            if len(images):
                name = f"{data['name']}_{part}"
                mlflow.log_input(from_numpy(images, source, targets, name, digest), context)
