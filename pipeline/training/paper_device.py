"""Steps of Adam on a device of PyTorch's, for all trials at once; see ``paper_stack``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from pipeline.training import paper_kernel, paper_stack
from pipeline.training.paper_engine import Cores, Engine, Epoch
from pipeline.training.paper_kernel import F32, U8, U32, Batches, Chain

GROUPS = 128
"""Products of matrices side by side that keep a large GPU busy."""
PART = 2_048
"""Images of all trials that are evaluated at once."""
FIRST, SECOND, EPSILON = 0.9, 0.999, 1e-8
WARM_UPS = 3
"""Steps before one is recorded: libraries choose their code in these."""


def groups(trials: int, images: int) -> int:
    """Count a trial's groups: the largest divisor of its ``images`` with GROUPS in all at most."""
    return max(
        n for n in range(1, images + 1) if n == 1 or (images % n == 0 and n * trials <= GROUPS)
    )


@dataclass
class _Step:
    """A step's state, in place on the device: a graph replays it without the host."""

    chain: Chain
    images: Tensor
    labels: Tensor
    shares: Tensor
    hard: float
    temperature: float
    mode: int
    rows: Tensor
    moments: Tensor
    orders: Tensor
    """(steps, t, n)"""
    rates: Tensor
    """(steps, 2): of the first moment, and of the second's root."""
    at: Tensor
    total: Tensor
    groups: int

    def run(self) -> None:
        order = self.orders.index_select(0, self.at).squeeze(0)
        rate, root = self.rates.index_select(0, self.at).squeeze(0).unbind()
        images, labels, shares = (e[order] for e in (self.images, self.labels, self.shares))
        rows = self.rows.detach().requires_grad_()
        found = paper_stack.logits(self.chain, rows, images, self.mode, self.groups)
        loss = paper_stack.losses(found, labels, shares, self.hard, self.temperature).mean(1)
        (gradient,) = torch.autograd.grad(loss.sum(), rows)
        first, second = self.moments
        first.mul_(FIRST).add_(gradient, alpha=1 - FIRST)
        second.mul_(SECOND).addcmul_(gradient, gradient, value=1 - SECOND)
        self.rows.sub_(rate * first / (second.sqrt() * root + EPSILON))
        self.total.add_(loss.detach())
        self.at.add_(1)


@dataclass
class Stacked:
    """Images stay on the device from one epoch to the next, and so does the recorded step."""

    chain: Chain
    device: str
    _kept: dict[int, tuple[object, Tensor]] = field(default_factory=dict)
    _step: _Step | None = None
    _graph: torch.cuda.CUDAGraph | None = None

    def __post_init__(self) -> None:
        if self.device == "cuda":
            torch.set_float32_matmul_precision("high")

    def train(
        self, rows: Sequence[F32], moments: Sequence[F32], batches: Batches, epoch: Epoch
    ) -> list[float]:
        step = self._at(rows, moments, batches, epoch)
        steps = len(epoch.rates)
        generator = torch.Generator(self.device).manual_seed(sum(epoch.seeds) % 2**63)
        drawn = torch.randint(
            len(epoch.images), step.orders.shape, generator=generator, device=self.device
        )
        chosen = self._on_device(epoch.images)
        step.orders.copy_(chosen[drawn])
        step.rates.copy_(torch.from_numpy(_corrected(epoch)))
        if self.device == "cuda" and self._graph is None:
            self._record(step, rows, moments)
        step.at.zero_()
        step.total.zero_()
        for _ in range(steps):
            if self._graph is None:
                step.run()
            else:
                self._graph.replay()
        for number, (row, moment) in enumerate(zip(rows, moments, strict=True)):
            row[:] = step.rows[number].cpu().numpy()
            moment[:] = step.moments[:, number].cpu().numpy()
        return [float(each) for each in step.total / steps]

    @torch.no_grad()
    def logits(self, rows: Sequence[F32], mode: int, images: U8) -> list[F32]:
        stack = torch.from_numpy(np.stack(rows)).to(self.device)
        each = max(1, PART // len(rows))
        parts = []
        for part in torch.split(self._on_device(images), each):
            given = part.expand(len(rows), *part.shape)
            parts.append(paper_stack.logits(self.chain, stack, given, mode))
        return list(torch.cat(parts, 1).cpu().numpy())

    def _on_device(self, array: U8 | U32) -> Tensor:
        if id(array) not in self._kept:
            widened = array.astype(np.int64) if array.dtype == np.uint32 else array
            self._kept[id(array)] = array, torch.from_numpy(widened).to(self.device)
        return self._kept[id(array)][1]

    def _at(
        self, rows: Sequence[F32], moments: Sequence[F32], batches: Batches, epoch: Epoch
    ) -> _Step:
        """Return the kept step with this state, or a new one."""
        steps, found = len(epoch.rates), self._step
        shape = (steps, len(rows), epoch.size)
        if found is None or (found.mode, found.orders.shape) != (epoch.mode, shape):
            where = torch.device(self.device)
            found = self._step = _Step(
                chain=self.chain,
                images=self._on_device(batches.images),
                labels=self._on_device(batches.labels),
                shares=self._on_device(batches.shares),
                hard=batches.hard,
                temperature=batches.temperature,
                mode=epoch.mode,
                rows=torch.zeros(len(rows), len(rows[0]), device=where),
                moments=torch.zeros(2, len(rows), len(rows[0]), device=where),
                orders=torch.zeros(shape, dtype=torch.int64, device=where),
                rates=torch.zeros(steps, 2, device=where),
                at=torch.zeros(1, dtype=torch.int64, device=where),
                total=torch.zeros(len(rows), device=where),
                groups=groups(len(rows), epoch.size),
            )
            self._graph = None
        found.rows.copy_(torch.from_numpy(np.stack(rows)))
        found.moments.copy_(torch.from_numpy(np.stack(moments, 1)))
        return found

    def _record(self, step: _Step, rows: Sequence[F32], moments: Sequence[F32]) -> None:
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UPS):
                step.at.zero_()
                step.run()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        step.at.zero_()
        with torch.cuda.graph(graph):
            step.run()
        self._graph = graph
        step.rows.copy_(torch.from_numpy(np.stack(rows)))
        step.moments.copy_(torch.from_numpy(np.stack(moments, 1)))


def _corrected(epoch: Epoch) -> F32:
    """Return each step's rate and what the root of the second moment is multiplied with."""
    found = []
    for number, rate in enumerate(epoch.rates):
        now = epoch.done + number + 1
        found.append((float(rate) / (1 - FIRST**now), 1 / math.sqrt(1 - SECOND**now)))
    return np.array(found, np.float32)


def engine(chain: Chain, device: str, threads: int) -> Engine:
    """Return the engine for ``cpu``, or for a device of PyTorch's."""
    return Stacked(chain, device) if device != "cpu" else Cores(paper_kernel.build(chain), threads)
