"""Weights that come with the repository: what ``train=paper`` made in an hour, in a few KB.

``released/NAME.npz`` holds integers as the firmware has them: ``<layer>.weight`` and ``.bias``,
``.steps`` (log2 of what one unit of each is worth) and log2 thresholds. ``released/NAME.json`` says
where they come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from pipeline.artifacts import Arrays, read_json, read_npz
from pipeline.errors import ThimbleError
from pipeline.models.network import Model
from pipeline.quantize.parameters import from_arrays
from pipeline.quantize.simulated import BIAS, PIXEL_EXPONENT, THRESHOLDS
from pipeline.training.environment import Run
from pipeline.training.recipe import ACCURACY_FLOAT, Recipe, Trained

FOLDER = Path(__file__).with_name("released")


@dataclass(frozen=True)
class Released(Recipe):
    """``weights`` names them: MODEL-DATA. Nothing is trained, seeds and threads play no part."""

    weights: str = ""
    needs_data: bool = False

    def train(self, model: Model, data: Arrays, run: Run) -> Trained:
        """``data`` is not looked at."""
        path = FOLDER / f"{self.weights}.npz"
        if not path.is_file():
            known = ", ".join(sorted(each.stem for each in FOLDER.glob("*.npz")))
            raise ThimbleError(
                f"train=released: no weights for {self.weights}, there are {known}: "
                "use train=quick or train=paper"
            )
        weights = real(read_npz(path))
        for name, layer in model.chain().named_children():
            if not isinstance(layer, (nn.Conv2d, nn.Linear)):
                continue
            found = weights.get(f"{name}.weight", np.zeros(0)).shape
            if found != layer.weight.shape:
                raise ThimbleError(
                    f"train=released: {self.weights} has {name}.weight of shape {list(found)}, the "
                    f"model {list(layer.weight.shape)}: leave model.* as it is or use train=quick"
                )
        reached = provenance(self.weights)["accuracy_float"]
        return Trained(weights | {ACCURACY_FLOAT: np.array(reached)}, [])


def provenance(name: str) -> dict[str, Any]:
    """Recipe, seed, commit, trials, figures and time of released weights."""
    found: dict[str, Any] = read_json(FOLDER / f"{name}.json")
    return found


def real(integers: Arrays) -> Arrays:
    """The content of ``weights.npz``: values that lie on their grids already."""
    weights: Arrays = {}
    for name, values in integers.items():
        layer, _, kind = name.rpartition(".")
        if kind in ("weight", "bias"):
            step = 2.0 ** float(integers[f"{layer}.steps"][("weight", "bias").index(kind)])
            weights[name] = values.astype(np.float32) * np.float32(step)
        elif kind in THRESHOLDS:
            weights[name] = values.astype(np.float32)
    return weights


def integers(model: Model, weights: Arrays) -> Arrays:
    """The inverse: what to release of a training's ``weights.npz``."""
    network = from_arrays(model, weights)
    if network.has_units:
        raise ThimbleError("weights of chains are released, and not of residual units")
    network.freeze()
    packed: Arrays = {}
    incoming = float(PIXEL_EXPONENT)
    for name, layer in network.quantized.items():
        steps = layer.exponents(incoming)
        weight, bias = (round(float(each)) for each in (steps.weight, steps.bias))
        packed[f"{name}.weight"] = layer.weights.integers(layer.layer.weight, weight).numpy()
        packed[f"{name}.bias"] = BIAS.integers(layer.bias, bias).numpy()
        packed[f"{name}.steps"] = np.array([weight, bias])
        for kind in THRESHOLDS:
            if (threshold := getattr(layer, kind)) is not None:
                packed[f"{name}.{kind}"] = np.array(int(threshold))
        incoming = incoming if steps.out is None else float(steps.out)
    return {name: values.astype(np.int8) for name, values in packed.items()}
