"""The anomaly detector of MLPerf Tiny: an autoencoder of dense layers (Banbury et al. 2021,
arXiv 2106.07597; the baseline of DCASE 2020, task 2). 264,192 multiply-accumulates; 269,992 values
with the moving statistics.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from torch import nn

from pipeline.models.network import Model


@dataclass(frozen=True)
class Autoencoder(Model):
    """Five frames of 128 log-mel energies, as one pixel of 640 channels, come out again as
    ``classes`` = 640 outputs.

    Attributes:
        widths: outputs of each hidden layer.
    """

    input_shape: tuple[int, int, int] = (1, 1, 640)
    classes: int = 640
    widths: tuple[int, ...] = (128, 128, 128, 128, 8, 128, 128, 128, 128)

    def build(self) -> nn.Sequential:
        width = prod(self.input_shape)
        network = nn.Sequential()
        network.add_module("flatten", nn.Flatten())
        for index, hidden in enumerate(self.widths, 1):
            network.add_module(f"dense{index}", nn.Linear(width, hidden))
            network.add_module(f"norm{index}", nn.BatchNorm1d(hidden))
            network.add_module(f"relu{index}", nn.ReLU())
            width = hidden
        network.add_module("last", nn.Linear(width, self.classes))
        return network
