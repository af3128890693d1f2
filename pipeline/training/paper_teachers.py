"""Several teachers, each trained from other weights on the images in another order, whose logits
are averaged (Hinton et al. 2015, section 4)."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from pipeline.training.checkpoint import Checkpoint, fingerprint
from pipeline.training.environment import Run
from pipeline.training.examples import Examples
from pipeline.training.paper_progress import Steps
from pipeline.training.paper_teacher import Teacher


class Teachers(nn.Module):
    """Images to the mean of what ``each`` makes of them."""

    def __init__(self, each: list[nn.Module]) -> None:
        super().__init__()
        self.each = nn.ModuleList(each)

    def forward(self, images: Tensor) -> Tensor:
        return torch.stack([network(images) for network in self.each]).mean(0)


def trained(
    teacher: Teacher, count: int, train: Examples, classes: int, run: Run, key: str, steps: Steps
) -> tuple[nn.Module, str]:
    """``count`` of them, in evaluation mode, and what their judgement depends on; ``key``: what
    the first one's training does."""
    first = teacher.train(train, classes, run, Checkpoint(run.checkpoints, key), steps)
    if count == 1:
        return first, key
    networks = [first]
    for number in range(1, count):
        keep = Checkpoint(run.checkpoints, fingerprint(key, number))
        other = replace(run, seed=run.generator(number).initial_seed())
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(other.seed)
            networks.append(teacher.train(train, classes, other, keep, steps))
    return Teachers(networks).eval(), fingerprint(key, "teachers", count)
