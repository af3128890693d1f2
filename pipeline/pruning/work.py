"""Context of a pruning method: the data, the session of its trainings, and its record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor, nn

from pipeline.artifacts import Arrays
from pipeline.errors import ThimbleError
from pipeline.importers.float_graph import FloatGraph
from pipeline.models.network import Model
from pipeline.pruning.couplings import Couplings, Mask, couplings
from pipeline.pruning.cut import cut
from pipeline.pruning.distilled import DistillationPhase
from pipeline.pruning.limited import Limited
from pipeline.pruning.matched import matched
from pipeline.pruning.planner import Needs
from pipeline.pruning.tuned import Tuned
from pipeline.training.checkpoint import fingerprint
from pipeline.training.environment import Run
from pipeline.training.examples import Examples, accuracy
from pipeline.training.float_only import SgdPhase
from pipeline.training.loop import Row
from pipeline.training.session import Session, session

SETTLING_IMAGES = 256
"""Images that the statistics of layers are taken from."""

CLOSE = 0.05
"""Glances are believed that miss the last plan's peak by less than such a part."""

RATE = 0.05
"""Half of what training from the beginning rises to."""

Shapes = tuple[tuple[str, tuple[int, ...]], ...]


@dataclass
class Work:
    """One pruning.

    Attributes:
        network: before it is pruned.
        phases: of training, None where there are to be no epochs.
        frames: the first training images, (n, c, h, w).
        steps: what the network needed, at first and after each step.
        asked: what the planner has said, by the shapes of all tensors: plans depend on no more.
        seen: the same estimated.
        last: the network planned last and its peak, until it is looked at; ``above``: the bytes by
            which that plan holds more than an estimate says; None where estimates are of no use.
    """

    method: Limited
    network: FloatGraph
    phases: Session | None
    frames: Tensor
    steps: list[Mapping[str, float]] = field(default_factory=list)
    asked: dict[Shapes, Needs] = field(default_factory=dict)
    seen: dict[Shapes, Needs] = field(default_factory=dict)
    last: tuple[FloatGraph, float] | None = None
    above: float | None = None

    @classmethod
    @contextmanager
    def opened(
        cls, method: Limited, model: Model, data: Arrays, run: Run, network: FloatGraph
    ) -> Iterator[Work]:
        """
        Raises:
            ThimbleError: for data without labels, or of another size than the model's input.
        """
        if not method.epochs:
            yield cls(method, network, None, torch.empty(0))
            return
        if not len(data.get("train_labels", ())):
            raise ThimbleError(
                f"prune.epochs={method.epochs}: fine-tuning needs labelled images, and the data "
                "set has none; choose another data, or prune.epochs=0"
            )
        model.check(data)
        train = Examples.of(data, "train", method.images or None)
        held = Examples.of(data, "validation")
        weights = [value for node in network.nodes for value in vars(node).values()]
        key = fingerprint(method, model, run.seed, run.threads, *weights, *data.values())
        with session(
            nn.Identity(), train, held if len(held.labels) else train,
            method.distortion, run, key=key, batch=method.batch, epochs=method.epochs,
        ) as phases:  # fmt: skip
            yield cls(method, network, phases, train.pixels[:SETTLING_IMAGES])

    @property
    def epochs(self) -> list[Row]:
        return self.phases.rows if self.phases else []

    def ask(self, network: FloatGraph) -> Needs:
        shapes = tuple(network.shapes.items())
        if shapes not in self.asked:
            self.asked[shapes] = self.method.planner(network)
            self.last = network, self.asked[shapes].amounts["pmu_bytes"]
        return self.asked[shapes]

    def estimate(self, network: FloatGraph) -> Needs:
        """About what the network needs, from the last plan on; where that can't be, by a plan."""
        shapes, planner = tuple(network.shapes.items()), self.method.planner
        if self.last and "latency_us" not in self.method.limits:
            wider, peak = self.last
            seen = planner.estimate(wider)
            above = peak - seen.amounts["pmu_bytes"] if seen else peak
            self.above, self.last = above if abs(above) < CLOSE * peak else None, None
        if self.above is None or shapes in self.asked:
            return self.ask(network)
        if shapes not in self.seen:
            seen = planner.estimate(network)
            assert seen is not None
            peak = seen.amounts["pmu_bytes"] + self.above
            self.seen[shapes] = replace(seen, amounts={**seen.amounts, "pmu_bytes": peak})
        return self.seen[shapes]

    def accuracy(self, network: FloatGraph, test: Examples) -> float:
        tuned = Tuned(couplings(network), self.frames).eval()
        return accuracy(tuned, test.pixels, test.labels)

    def cut(self, found: Couplings, kept: Mask) -> FloatGraph:
        """Cut off the other units; where there is training, ready for that."""
        if self.phases is None:
            return cut(found, kept)
        shape = found.graph.shapes[found.graph.input]
        return matched(found, kept, self.frames.permute(0, 2, 3, 1).reshape(-1, *shape))

    def note(self, needs: Needs) -> None:
        self.steps.append(needs.amounts)

    def gated(self, found: Couplings, epochs: int, penalties: Mapping[int, float]) -> FloatGraph:
        """The graph of ``found`` after ``epochs`` with gates, which are then in its weights."""
        return self._trained("gates", Tuned(found, self.frames, penalties), epochs)

    def tuned(self, network: FloatGraph) -> FloatGraph:
        """``network`` after all epochs that are left."""
        left = self.method.epochs - len(self.epochs)
        if not left:
            return network
        return self._trained("tune", Tuned(couplings(network), self.frames), left)

    def _trained(self, name: str, network: Tuned, epochs: int) -> FloatGraph:
        assert self.phases is not None
        method, rate = self.method, self.method.rate or RATE
        phase = SgdPhase(
            name, len(self.epochs), epochs, rate, method.batch, method.momentum, method.decay
        )
        if method.label_share < 1:
            phase = DistillationPhase(
                **vars(phase),
                label_share=method.label_share,
                temperature=method.temperature,
                teacher=self.teacher,
            )
        self.phases.train(phase, network)
        return network.graph()

    @cached_property
    def teacher(self) -> Tuned:
        return Tuned(couplings(self.network), self.frames).eval()
