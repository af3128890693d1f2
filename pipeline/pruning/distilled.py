"""Fine-tuning that learns from the network before it was pruned, too (Hinton et al. 2015,
"Distilling the knowledge in a neural network")."""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from pipeline.training.float_only import SgdPhase


@dataclass(frozen=True)
class DistillationPhase(SgdPhase):
    """
    Attributes:
        label_share: of the loss; the rest is the teacher's, at ``temperature``.
        teacher: from images to scores, as the network that is trained.
    """

    label_share: float
    temperature: float
    teacher: nn.Module = field(repr=False)

    def loss(self, network: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        scores = network(images)
        with torch.no_grad():
            shares = torch.softmax(self.teacher(images) / self.temperature, 1)
        distillation = cross_entropy(scores / self.temperature, shares) * self.temperature**2
        loss = self.label_share * cross_entropy(scores, labels)
        return loss + (1 - self.label_share) * distillation
