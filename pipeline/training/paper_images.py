"""The images small networks learn from: distorted, labelled by the teacher and pooled."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from pipeline.training.augment import Distortion
from pipeline.training.checkpoint import Checkpoint, State, fingerprint
from pipeline.training.environment import Run
from pipeline.training.examples import Examples
from pipeline.training.paper_kernel import F32, U8
from pipeline.training.paper_progress import Steps
from pipeline.training.paper_teacher import logits

PART = 1_000
"""Images scored at once."""


@dataclass(frozen=True)
class SoftLabelled:
    """Pooled images (n, side, side, c) of 0…15, labels (n,), the teacher's shares of the classes
    (n, classes) in 1/255, without a teacher those of the labels, and how strongly each image is
    distorted (n,)."""

    images: U8
    labels: U8
    shares: U8
    strengths: F32


def times(distortion: Distortion, strength: float) -> Distortion:
    """Return every bound of ``distortion`` times ``strength``."""
    bounds = ("rotation_degrees", "scale", "shear", "shift_pixels", "elastic_pixels")
    return replace(distortion, **{name: getattr(distortion, name) * strength for name in bounds})


@dataclass(frozen=True)
class Copies:
    """``count`` copies of a set, copy ``i`` distorted ``strengths[i % n]`` times as much as
    ``distortion`` says; the shares of the ``classes`` are taken at ``temperature``."""

    classes: int
    count: int
    strengths: Sequence[float]
    distortion: Distortion
    temperature: float

    def strength(self, index: int) -> float:
        return float(self.strengths[index % len(self.strengths)])

    def soft_labelled(
        self,
        source: Examples,
        teacher: nn.Module | None,
        pool: nn.Module,
        run: Run,
        key: str,
        steps: Steps,
    ) -> SoftLabelled:
        """All copies, one after another; each is made once and kept beside the checkpoints."""

        def kept(index: int) -> State:
            keep = Checkpoint(run.checkpoints, fingerprint(key, self, index))
            if (state := keep.load()) is None:
                state = self._copy(source, teacher, pool, run, index)
                keep.save(state)
            return state

        parts: list[list[Tensor]] = []
        with ThreadPoolExecutor(max_workers=run.threads) as threads:
            for index, state in enumerate(threads.map(kept, range(self.count))):
                strengths = torch.full((len(state["labels"]),), self.strength(index))
                parts.append([state["images"], state["labels"], state["shares"], strengths])
                share = len(strengths) / len(source.labels)
                said = f"{share:.2%} recognised by the teacher" if teacher else "distorted"
                steps.done("images", index + 1, self.count, said)
        return SoftLabelled(*(torch.cat(each).numpy() for each in zip(*parts, strict=True)))

    @torch.no_grad()
    def _copy(
        self, source: Examples, teacher: nn.Module | None, pool: nn.Module, run: Run, index: int
    ) -> State:
        distortion = times(self.distortion, self.strength(index))
        pixels = distortion.apply(source.pixels, run.generator(index))
        if teacher is None:
            known = torch.ones(len(pixels), dtype=torch.bool, device=pixels.device)
            shares = one_hot(source.labels, self.classes).float()
        else:
            scores = torch.cat([logits(teacher, part) for part in torch.split(pixels, PART)])
            known = scores.argmax(1) == source.labels
            shares = torch.softmax(scores[known] / self.temperature, 1)
        pooled = (pool(pixels[known]) * 16).permute(0, 2, 3, 1)
        return {
            "images": pooled.to(torch.uint8, memory_format=torch.contiguous_format).cpu(),
            "labels": source.labels[known].to(torch.uint8).cpu(),
            "shares": torch.round(shares * 255).to(torch.uint8).cpu(),
        }
