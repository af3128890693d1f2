"""A chain of layers for the 4-bit format without its weakest channels, and fine-tuned.

The tensors get smaller under their names: a chain's layers are as large as their weights.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from torch import nn

from pipeline.artifacts import Arrays
from pipeline.errors import ThimbleError
from pipeline.models.network import Model
from pipeline.pruning.method import Pruned, Row
from pipeline.quantize.parameters import from_arrays, to_arrays
from pipeline.quantize.simulated import QuantizedNetwork
from pipeline.training.augment import Distortion
from pipeline.training.checkpoint import fingerprint
from pipeline.training.environment import Run, repeatable
from pipeline.training.examples import Examples
from pipeline.training.random_weights import RANDOM
from pipeline.training.recipe import ACCURACY_FLOAT
from pipeline.training.session import session

RATE = 0.003


@dataclass(frozen=True)
class Chain:
    """``ratio`` of the channels of every convolution go, at least one stays.

    Fine-tuning is quantization-aware: half of ``epochs`` with trained thresholds, then with frozen
    ones, at a ``rate`` up to 0.003 where it is 0.
    """

    ratio: float
    epochs: int
    rate: float
    batch: int
    images: int = 0
    distortion: Distortion = field(default_factory=Distortion)

    def prune(self, model: Model, weights: Arrays, data: Arrays, run: Run) -> Pruned:
        smaller, rows = self.cut(from_arrays(model, weights), weights)
        if not self.epochs:
            return Pruned(smaller, rows)
        model.check(data)
        train = Examples.of(data, "train", self.images or None)
        validation = Examples.of(data, "validation")
        key = fingerprint(self, model, run.seed, run.threads, *weights.values(), *data.values())
        rate, frozen = self.rate or RATE, self.epochs // 2
        with repeatable(run):
            network = from_arrays(model, smaller)
            with session(
                network.pool, train, validation, self.distortion, run,
                key=key, batch=self.batch, epochs=self.epochs,
            ) as phases:  # fmt: skip
                phases.phase("tune", network, self.epochs - frozen, rate)
                network.freeze()
                phases.phase("tune-frozen", network, frozen, rate / 2)
        tuned = {name: each for name, each in smaller.items() if name not in RANDOM}
        return Pruned(tuned | to_arrays(network), rows, epochs=phases.rows)

    def cut(self, network: QuantizedNetwork, weights: Arrays) -> tuple[Arrays, list[Row]]:
        """``weights`` without the weakest channels: their filters, biases, and what reads them; and
        without its accuracy before quantization, of which there is none of the smaller one."""
        if network.has_units:
            raise ThimbleError(
                "prune: the channels of residual units are added up, and this pruning knows of "
                "chains only: use prune=none"
            )
        smaller, rows = {k: v for k, v in weights.items() if k != ACCURACY_FLOAT}, []
        kept: npt.NDArray[np.bool_] | None = None  # of the channels that the next layer reads
        for name, layer in network.quantized.items():
            weight = smaller[f"{name}.weight"]
            if kept is not None:
                weight = _without_inputs(weight, kept)
            kept = None
            if isinstance(layer.layer, nn.Conv2d) and layer.out_log2 is not None:
                if layer.layer.groups != 1:
                    raise ThimbleError(
                        f"prune: {name} has groups, which cannot be pruned by channel"
                    )
                kept = self.strongest(weight)
                weight = weight[kept]
                smaller[f"{name}.bias"] = smaller[f"{name}.bias"][kept]
            before = weights[f"{name}.weight"]
            rows.append(Row(name, len(before), len(weight), before.size, weight.size))
            smaller[f"{name}.weight"] = np.ascontiguousarray(weight)
        return smaller, rows

    def strongest(self, weight: npt.NDArray[np.float32]) -> npt.NDArray[np.bool_]:
        """Choose the output channels of ``weight`` (out, …) that stay; ties keep the first."""
        norms = np.abs(weight.reshape(len(weight), -1)).sum(1)
        stay = max(1, len(norms) - round(self.ratio * len(norms)))
        mask = np.zeros(len(norms), dtype=bool)
        mask[np.argsort(-norms, kind="stable")[:stay]] = True
        return mask


def _without_inputs(
    weight: npt.NDArray[np.float32], kept: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float32]:
    """(out, in, …) with only the kept inputs; a dense layer has many columns a channel."""
    if weight.ndim == 2:
        kept = kept.repeat(weight.shape[1] // len(kept))
    return weight[:, kept]
