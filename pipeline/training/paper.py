"""The published recipe (Gural & Murmann 2019, Appendix E) with a teacher, in minutes on two cores.

A teacher is trained; it filters and labels distorted copies of the training images; many trials of
the small network are trained on them, float, then quantized with trained thresholds, then with
frozen ones, and after each phase only the best go on: successive halving (Jamieson & Talwalkar
2016). Before these come probes: short trainings, float and quantized, for how much quantization
costs depends on the initial weights, and a float network's loss does not tell. Trials are compared
on the validation images and on distorted copies of these: by their loss until the last phase, then
by their accuracy, which is the score. The integers of the best may be polished in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
import torch
from torch import Tensor

from pipeline.artifacts import Arrays
from pipeline.errors import ThimbleError
from pipeline.metrics import SCORE
from pipeline.models.network import Model, PixelPool
from pipeline.models.small_cnn import Convolution
from pipeline.quantize.parameters import to_arrays
from pipeline.training import paper_kernel
from pipeline.training.augment import Distorting, Distortion
from pipeline.training.checkpoint import Checkpoint, fingerprint
from pipeline.training.environment import Run, repeatable
from pipeline.training.examples import Examples
from pipeline.training.paper_device import engine
from pipeline.training.paper_engine import Engine, device
from pipeline.training.paper_images import Copies, SoftLabelled, times
from pipeline.training.paper_progress import Steps
from pipeline.training.paper_rows import to_network
from pipeline.training.paper_teacher import CONVOLUTIONS, Teacher, trained
from pipeline.training.paper_trials import Trials, fresh
from pipeline.training.recipe import Recipe, Trained

VALIDATION_STRENGTHS = (0.5, 1.0, 1.0)
"""Strengths of the distorted copies of the validation images."""


@dataclass(frozen=True)
class Paper(Distorting, Recipe):
    """Settings of the recipe.

    Attributes:
        trials: how many start each phase; a single one is left at the end.
        float_epochs: in floating point.
        quantized_epochs: with 4-bit weights and activations, thresholds trained, too.
        frozen_epochs: the same with thresholds frozen.
        float_rate, quantized_rate, frozen_rate: learning rate of that phase.
        images: training images used; 0 is all.
        probes: how many are probed, each by ``probe_float_epochs`` and ``probe_quantized_epochs``;
            the best of them start the phases, from where they were before quantization. 0: none.
        probe_float_epochs, probe_quantized_epochs: epochs of a probe.
        copies, strengths: distorted copies of the training set; ``strengths`` are taken in turn
            and multiply the bounds that follow below.
        last_strength: the strongest distortion in the last phase. Weak ones helped with clothes;
            with digits they raised the accuracy on validation images, whose writers are also in
            the training set, and lowered it on distorted ones.
        polish_sweeps: at the end each weight and bias of the best trial is tried so often, one step
            up or down, and stays where the loss is less.
        label_share: of the loss; the rest is the teacher's, at ``temperature``.
        batch: small, for many steps: these networks learn from noise.
        orthogonal: convolutions begin with orthogonal weights, as the models here do (E.4); false:
            all layers with PyTorch's own.
        teacher: channels, kernel and stride of its convolutions; none: all copies are learned from,
            by their labels alone (``label_share=1``), as a search does for its short trainings.
        teacher_pooled: the numbers, from 1, of its convolutions that a 2x2 maximum follows.
        teacher_dropout: share of its dense layer's inputs that a step leaves out.
        teacher_epochs: epochs of each teacher's training.
        temperature: that both sets of outputs are divided by before they are compared.
        teachers: how many are trained, each from other weights; their scores are averaged.
        device: ``cpu``, ``cuda``, or ``auto``: a GPU if there is one. What they compute is the same
            up to rounding and the order of the images.
    """

    trials: Sequence[int]
    float_epochs: int
    quantized_epochs: int
    frozen_epochs: int
    probes: int = 0
    probe_float_epochs: int = 20
    probe_quantized_epochs: int = 15
    float_rate: float = 0.01
    quantized_rate: float = 0.003
    frozen_rate: float = 0.001
    polish_sweeps: int = 0
    batch: int = 64
    orthogonal: bool = True
    images: int = 0
    teacher: Sequence[Convolution] = CONVOLUTIONS
    teacher_pooled: Sequence[int] = ()
    teacher_dropout: float = 0.0
    teacher_epochs: int = 16
    teachers: int = 1
    copies: int = 20
    strengths: Sequence[float] = (0.0, 0.5, 1.0, 1.0, 1.5)
    last_strength: float = 1.5
    label_share: float = 0.7
    temperature: float = 2.0
    _: KW_ONLY
    rotation_degrees: float = 5.0
    scale: float = 0.05
    shear: float = 0.05
    shift_pixels: float = 1.0
    elastic_pixels: float = 0.6
    flip: bool = False
    device: str = "auto"

    def __post_init__(self) -> None:
        if len(self.trials) != 3 or min(self.trials) < 1:
            raise ThimbleError(
                f"train.trials={list(self.trials)}: three numbers, of the trials in each phase"
            )
        if self.teachers < 1:
            raise ThimbleError(
                f"train.teachers={self.teachers}: at least 1; train.teacher=[] is for none"
            )
        if not self.teacher and self.label_share != 1:
            raise ThimbleError(
                f"train.label_share={self.label_share:g}: without a teacher (train.teacher=[]) it "
                "has to be 1"
            )
        if not 0 <= self.teacher_dropout < 1:
            raise ThimbleError(
                f"train.teacher_dropout={self.teacher_dropout:g}: a share, from 0 to below 1"
            )
        if not set(self.teacher_pooled) <= set(range(1, len(self.teacher) + 1)):
            raise ThimbleError(
                f"train.teacher_pooled={list(self.teacher_pooled)}: numbers of the "
                f"{len(self.teacher)} convolutions in train.teacher"
            )
        if self.polish_sweeps < 0:
            raise ThimbleError(f"train.polish_sweeps={self.polish_sweeps}: 0 for none, or more")
        if 0 < self.probes < self.trials[0]:
            raise ThimbleError(
                f"train.probes={self.probes}: at least the {self.trials[0]} trials that go on, or 0"
            )

    @property
    def phases(self) -> list[tuple[str, int, int, float]]:
        """Name, trials, epochs and learning rate of each."""
        float_trials, quantized, frozen = self.trials
        probes = [
            ("float_probe", self.probes, self.probe_float_epochs, self.float_rate),
            ("quantized_probe", self.probes, self.probe_quantized_epochs, self.quantized_rate),
        ]
        return [
            *(probes if self.probes else []),
            ("float", float_trials, self.float_epochs, self.float_rate),
            ("quantized", quantized, self.quantized_epochs, self.quantized_rate),
            ("frozen", frozen, self.frozen_epochs, self.frozen_rate),
        ]

    def fit(self, model: Model, data: Arrays, run: Run) -> Trained:
        on = device(self.device)
        with repeatable(run, on):
            network = model.chain()
            pool, side = network[0], model.input_shape[0]
            if not isinstance(pool, PixelPool) or model.input_shape[1] != side:
                raise ThimbleError("train=paper takes square images that are pooled: use quick")
            used = engine(paper_kernel.Chain.of(network, side), on, run.threads)
            trials, strengths, key = self._trials(model, pool, used, data, run)
            every, some = (
                np.flatnonzero(strengths <= most).astype(np.uint32)
                for most in (np.inf, self.last_strength)
            )
            key = fingerprint(key, self.label_share, self.batch, self.orthogonal, model)
            for name, count, epochs, rate in self.phases:
                images = some if name == "frozen" else every
                trials.contenders = trials.contenders[:count]
                key = fingerprint(key, name, count, epochs, rate, images)
                keep = Checkpoint(run.checkpoints, key)
                trials.phase(name, epochs, rate, self.batch, images, keep)
            key = fingerprint(key, "polished", self.polish_sweeps)
            trials.polish(self.polish_sweeps, images, Checkpoint(run.checkpoints, key))
            best = trials.contenders[0]
            weights = to_arrays(to_network(model, best.row)) | {SCORE: np.array(best.score)}

        def evaluate(test: Examples) -> float:
            with repeatable(run, on):
                pooled = _pooled(pool, test.pixels)
                (found,) = used.logits([best.float_row], paper_kernel.FLOAT, pooled)
            return float((found.argmax(1) == test.labels.numpy()).mean())

        return Trained(weights, trials.rows, evaluate)

    def _trials(
        self, model: Model, pool: PixelPool, used: Engine, data: Arrays, run: Run
    ) -> tuple[Trials, paper_kernel.F32, str]:
        """Before the first phase; the strengths of the images; a key for all made so far."""
        steps = Steps()
        train = Examples.of(data, "train", self.images or None).to(device(self.device))
        held = Examples.of(data, "validation").to(device(self.device))
        key = fingerprint(run.seed, self.images, data["train_images"], data["train_labels"])
        shapes = tuple((width, kernel, stride) for width, kernel, stride in self.teacher)
        teacher = Teacher(
            shapes,
            tuple(self.teacher_pooled),
            self.teacher_dropout,
            self.teacher_epochs,
            distortion=self.distortion_of_teacher,
        )
        key, scorer = fingerprint(key, teacher, pool.size), None
        if shapes:
            scorer, key = trained(teacher, self.teachers, train, model.classes, run, key, steps)
        shared = (self.distortion, self.temperature)
        copies = Copies(model.classes, self.copies, tuple(self.strengths), *shared)
        seen = copies.soft_labelled(train, scorer, pool, run, key, steps)
        count = len(VALIDATION_STRENGTHS)
        key = fingerprint(key, copies)
        copies = Copies(model.classes, count, VALIDATION_STRENGTHS, *shared)
        key = fingerprint(key, copies, data["validation_images"], data["validation_labels"])
        distorted = copies.soft_labelled(held, scorer, pool, run, key, steps)
        clean = _pooled(pool, held.pixels), held.labels.cpu().numpy().astype(np.uint8)
        validation = SoftLabelled(
            np.concatenate([clean[0], distorted.images]),
            np.concatenate([clean[1], distorted.labels]),
            distorted.shares,
            distorted.strengths,
        )
        batches = paper_kernel.Batches(
            seen.images, seen.labels, seen.shares, self.label_share, self.temperature
        )
        count = self.probes or self.trials[0]
        contenders = [fresh(model, run, number, self.orthogonal) for number in range(count)]
        images = len(train.labels)
        trials = Trials(
            model, used, run, batches=batches, epoch=images, validation=validation,
            clean=len(held.labels), steps=steps, contenders=contenders,
        )  # fmt: skip
        return trials, seen.strengths, key

    @property
    def distortion_of_teacher(self) -> Distortion:
        """Wider than that of the images it labels."""
        wider = times(self.distortion, 2)
        return replace(wider, elastic_pixels=self.elastic_pixels * 5 / 3)


def _pooled(pool: PixelPool, pixels: Tensor) -> paper_kernel.U8:
    """(n, c, h, w) in 0…255 -> (n, h', w', c) of 0…15"""
    whole = (pool(pixels) * 16).permute(0, 2, 3, 1)
    result: paper_kernel.U8 = whole.to(torch.uint8).contiguous().cpu().numpy()
    return result
