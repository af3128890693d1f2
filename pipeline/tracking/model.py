"""The network of a run as a model of MLflow: its C, which is compiled where the model is loaded."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
from mlflow.models import ModelSignature
from mlflow.types import DataType, ParamSchema, ParamSpec, Schema, TensorSpec

from pipeline.targets import predictor, shared_library

NEEDS = ("mlflow", "numpy")
"""Packages that a process needs to load the model, besides a C compiler."""

GROUPS = ("model", "data", "train", "prune", "quantize", "strategy", "hardware")
"""Whose options the model's parameters are."""


def log(folder: Path, config: Mapping[str, Any]) -> str:
    """Log the network that the run in ``folder`` generated, as an output of MLflow's active run;
    returns the model's id.

    Raises:
        ThimbleError: why there is no such model.
    """
    with tempfile.TemporaryDirectory(prefix="thimble-") as place:
        about = predictor.export(folder, Path(place))
        made = mlflow.pyfunc.log_model(
            name=re.sub(r"[^\w-]", "_", str(config["model"]["name"])),
            loader_module=Path(shared_library.__file__).stem,
            code_paths=[shared_library.__file__],
            data_path=place,
            signature=_signature(about),  # an example would be compiled
            pip_requirements=[f"{need}=={version(need)}" for need in NEEDS],
            params={group: config[group]["name"] for group in GROUPS},
        )
    return str(made.model_id)


def _signature(about: Mapping[str, Any]) -> ModelSignature:
    """Bytes, as images are; what the outputs mean; ``integers`` for those of the firmware."""
    return ModelSignature(
        _schema(about["inputs"], np.uint8),
        _schema(about["outputs"], np.float32),
        ParamSchema([ParamSpec("integers", DataType.boolean, False)]),
    )


def _schema(ends: list[dict[str, Any]], kind: type[np.generic]) -> Schema:
    """Arrays by name, where there are several."""
    names = [each["name"] if len(ends) > 1 else None for each in ends]
    shapes = [(-1, *each["shape"]) for each in ends]
    return Schema([TensorSpec(np.dtype(kind), *each) for each in zip(shapes, names, strict=True)])
