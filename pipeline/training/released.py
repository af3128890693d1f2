"""Weights that come with the repository: what a training made in an hour.

``released/NAME.npz`` holds, of a chain for the 4-bit format, integers as the firmware has them:
``<layer>.weight`` and ``.bias``, ``.steps`` (log2 of what one unit of each is worth) and log2
thresholds; of another network its state, weights in half precision. ``released/NAME.json`` says
where they come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from torch import nn

from pipeline.artifacts import Arrays, read_json, read_npz
from pipeline.errors import ThimbleError
from pipeline.models.network import Model, loaded, state_arrays
from pipeline.quantize.parameters import from_arrays
from pipeline.quantize.simulated import BIAS, THRESHOLDS
from pipeline.training.environment import Run
from pipeline.training.recipe import ACCURACY_FLOAT, Recipe, Trained

FOLDER = Path(__file__).with_name("released")


@dataclass(frozen=True)
class Released(Recipe):
    """Weights that come with the repository; nothing is trained.

    Attributes:
        weights: their name, MODEL-DATA. Where there are several, the run's seed chooses:
            MODEL-DATA-SEED; a seed without weights of its own takes MODEL-DATA.
    """

    weights: str = ""
    needs_data: ClassVar[bool] = False

    def fit(self, model: Model, data: Arrays, run: Run) -> Trained:
        """``data`` is not looked at."""
        chosen = f"{self.weights}-{run.seed}"
        name = chosen if (FOLDER / f"{chosen}.npz").is_file() else self.weights
        path = FOLDER / f"{name}.npz"
        if not path.is_file():
            known = ", ".join(sorted(each.stem for each in FOLDER.glob("*.npz")))
            raise ThimbleError(
                f"train=released: no weights for {self.weights}, there are {known}: "
                "use train=quick or train=paper"
            )
        weights = real(stored := read_npz(path))
        reached = {ACCURACY_FLOAT: np.array(provenance(name)["accuracy_float"])}
        if not any(name.endswith(".steps") for name in stored):
            return Trained(state_arrays(loaded(model.build(), weights)) | reached, [])
        for part, layer in model.chain().named_children():
            if not isinstance(layer, (nn.Conv2d, nn.Linear)):
                continue
            found = weights.get(f"{part}.weight", np.zeros(0)).shape
            if found != layer.weight.shape:
                raise ThimbleError(
                    f"train=released: {self.weights} has {part}.weight of shape {list(found)}, the "
                    f"model {list(layer.weight.shape)}: leave model.* as it is or use train=quick"
                )
        return Trained(weights | reached, [])


def provenance(name: str) -> dict[str, Any]:
    """Recipe, seed, commit, trials, figures and time of released weights."""
    found: dict[str, Any] = read_json(FOLDER / f"{name}.json")
    return found


def real(stored: Arrays) -> Arrays:
    """The content of ``weights.npz``: of integers, values that lie on their grids already."""
    weights: Arrays = {}
    for name, values in stored.items():
        layer, _, kind = name.rpartition(".")
        if f"{layer}.steps" not in stored:
            weights[name] = values.astype(np.float32) if values.dtype == np.float16 else values
        elif kind in ("weight", "bias"):
            step = 2.0 ** float(stored[f"{layer}.steps"][("weight", "bias").index(kind)])
            weights[name] = values.astype(np.float32) * np.float32(step)
        elif kind in THRESHOLDS:
            weights[name] = values.astype(np.float32)
    return weights


def rounded(weights: Arrays) -> Arrays:
    """Round a network in float for its release: its weights to 11 bits each, nothing else."""
    return {
        name: values.astype(np.float16) if name.endswith(".weight") and values.ndim > 1 else values
        for name, values in weights.items()
        if name != ACCURACY_FLOAT
    }


def integers(model: Model, weights: Arrays) -> Arrays:
    """The inverse: what to release of a training's ``weights.npz``."""
    network = from_arrays(model, weights)
    if network.has_units:
        raise ThimbleError("weights of chains are released, and not of residual units")
    network.freeze()
    packed: Arrays = {}
    for name, (layer, steps) in network.steps.items():
        weight, bias = (round(float(each)) for each in (steps.weight, steps.bias))
        packed[f"{name}.weight"] = layer.weights.integers(layer.layer.weight, weight).numpy()
        packed[f"{name}.bias"] = BIAS.integers(layer.bias, bias).numpy()
        packed[f"{name}.steps"] = np.array([weight, bias])
        for kind in THRESHOLDS:
            if (threshold := getattr(layer, kind)) is not None:
                packed[f"{name}.{kind}"] = np.array(int(threshold))
    return {name: values.astype(np.int8) for name, values in packed.items()}
