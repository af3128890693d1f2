"""Networks that keep state from one call to the next, for ``model=torch`` (docs/importing.md)."""

import torch
from torch import Tensor, nn


class Gestures(nn.Module):
    """One sample of an accelerometer a call: (1, 3) and h (1, 32) -> 5 gestures, and the next h."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.GRUCell(3, 32), nn.Linear(32, 5)

    def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        h = self.cell(x, h)
        return self.head(h), h


class Denoiser(nn.Module):
    """One frame of 42 features a call -> 22 gains, as in RNNoise; ``model.step=true`` keeps h."""

    def __init__(self, units: int = 96) -> None:
        super().__init__()
        self.cells = nn.GRU(42, units, num_layers=2, batch_first=True)
        self.gains = nn.Linear(units, 22)

    def forward(self, x: Tensor) -> Tensor:  # (1, 42, 1, 1)
        made, _ = self.cells(x.flatten(1)[:, None])
        return torch.sigmoid(self.gains(made))
