"""The teacher: a network too large for any of the boards, which says what an image shows.

It labels distorted images twice over. Those that it no longer recognises are left out (Gural &
Murmann 2019, Appendix E.3: unfiltered distortion *lowered* the small network's accuracy), and
its probabilities for the others are what the small network learns (Hinton et al. 2015,
"Distilling the knowledge in a neural network").
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from pipeline.models.small_cnn import Convolution
from pipeline.training.ahead import one_ahead
from pipeline.training.augment import Distortion
from pipeline.training.checkpoint import Checkpoint, fingerprint
from pipeline.training.environment import Run
from pipeline.training.examples import Examples
from pipeline.training.loop import Phase, finite
from pipeline.training.paper_progress import Steps

AS_IS = nn.Identity()
CONVOLUTIONS: tuple[Convolution, ...] = ((32, 5, 2), (48, 3, 1), (64, 3, 2), (96, 3, 1), (96, 3, 1))


@dataclass(frozen=True)
class TeacherPhase(Phase):
    """Training of a teacher; the rate of a step is that of its beginning."""

    def share(self, epoch: int, step: int, steps: int) -> float:
        return (epoch + step / steps) / self.epochs

    def loss(self, network: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        return cross_entropy(logits(network, images), labels)


@dataclass(frozen=True)
class Teacher:
    """Convolutions with batch normalisation, all but the last padded.

    Attributes:
        convolutions: channels, side of the kernel, stride of each.
        pooled: the numbers, from 1, of those that a 2x2 maximum follows.
        dropout: share of the dense layer's inputs that a step leaves out.
        epochs, rate, batch: of Adam with one cosine cycle.
        distortion: of the images it learns from, wider than those it will label.
    """

    convolutions: tuple[Convolution, ...] = CONVOLUTIONS
    pooled: tuple[int, ...] = ()
    dropout: float = 0.0
    epochs: int = 16
    rate: float = 0.003
    batch: int = 256
    distortion: Distortion = Distortion(
        rotation_degrees=10.0, scale=0.1, shear=0.1, shift_pixels=2.0, elastic_pixels=1.0
    )

    def build(self, image: torch.Size, classes: int) -> nn.Module:
        """``image`` is (c, h, w)."""
        depth, layers = image[0], []
        last = len(self.convolutions) - 1
        for index, (width, size, stride) in enumerate(self.convolutions):
            padding = 0 if index == last else size // 2
            layers += [
                nn.Conv2d(depth, width, size, stride, padding, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(),
            ]
            if index + 1 in self.pooled:
                layers.append(nn.MaxPool2d(2))
            depth = width
        dense = nn.Flatten(), nn.Dropout(self.dropout), nn.LazyLinear(classes)
        network: nn.Module = nn.Sequential(*layers, *dense)
        network(torch.zeros(2, *image))
        return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]

    def train(
        self, train: Examples, classes: int, run: Run, checkpoint: Checkpoint, steps: Steps
    ) -> nn.Module:
        """Train, and return the network after the last epoch, in evaluation mode."""
        network = self.build(train.pixels.shape[1:], classes).to(train.pixels.device)
        optimizer = torch.optim.Adam(network.parameters())
        begin = 0
        if (state := checkpoint.load()) is not None:
            network.load_state_dict(state["network"])
            optimizer.load_state_dict(state["optimizer"])
            begin = state["epoch"]
        phase = TeacherPhase("teacher", 0, self.epochs, self.rate, self.batch)

        def epoch(index: int) -> tuple[Tensor, Tensor]:
            return train.epoch(AS_IS, self.distortion, run, index)

        with one_ahead(epoch, self.epochs) as epochs:
            for index in range(begin, self.epochs):
                torch.manual_seed(run.generator(index).initial_seed())  # for dropout
                loss = phase.epoch(network, optimizer, *epochs(index), index)
                phase.check(loss, index, finite(network.parameters()))
                checkpoint.save(
                    {
                        "network": network.state_dict(),
                        "optimizer": optimizer.state_dict(),
                        "epoch": index + 1,
                    }
                )
                steps.done("teacher", index + 1, self.epochs, f"loss {loss:.4f}")
        return network.eval()


class Teachers(nn.Module):
    """Several teachers, each trained from other weights on the images in another order, whose
    logits are averaged (Hinton et al. 2015, section 4)."""

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


def logits(network: nn.Module, pixels: Tensor) -> Tensor:
    """(n, c, h, w) in 0…255 -> (n, classes); bfloat16 inside where AVX-512 or a GPU has it: others
    take nine times as long for that as for float32."""
    kind = pixels.device.type
    short = kind != "cpu" or torch.backends.cpu.get_cpu_capability() == "AVX512"
    with torch.autocast(kind, torch.bfloat16, enabled=short):
        result: Tensor = network((pixels / 255).contiguous(memory_format=torch.channels_last))
    return result.float()
