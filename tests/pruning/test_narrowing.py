"""Limits are kept, and nothing more goes than has to, compared with all choices of channels."""

from __future__ import annotations

from functools import cache
from itertools import pairwise, product
from math import prod

import numpy as np
import pytest
import torch
from torch import nn

from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import FloatGraph
from pipeline.importers.float_passes import simplified
from pipeline.importers.torch_export import exported
from pipeline.models.blocks import Blocks
from pipeline.pruning.couplings import Couplings, Group, Mask, couplings
from pipeline.pruning.cut import cut
from pipeline.pruning.narrowing import Narrowing
from pipeline.pruning.planner import Needs

SIZES = (4, 6, 5)
NETWORK = Blocks(
    (8, 8, 2),
    3,
    (
        {"kind": "conv", "channels": SIZES[0]},
        {"kind": "conv", "channels": SIZES[1]},
        {"kind": "conv", "channels": SIZES[2], "stride": 2},
    ),
)
"""At first two of its layers need equally much together: 64 * (4 + 6)."""


@cache
def found() -> Couplings:
    torch.manual_seed(1)
    return couplings(simplified(exported("three", NETWORK.build().eval(), NETWORK.example())))


def ask(network: FloatGraph) -> Needs:
    """As an ordinary schedule: a layer's input and output at once."""
    sizes = {name: float(prod(shape)) for name, shape in network.shapes.items()}
    pairs = [
        {node.output: sizes[node.output], **{name: sizes[name] for name in node.inputs}}
        for node in network.nodes
        if isinstance(node, nodes.Weighted)
    ]
    worst = max(pairs, key=lambda pair: sum(pair.values()))
    return Needs({"pmu_bytes": sum(worst.values())}, "", worst)


def at_peak(found: Couplings, kept: Mask, needs: Needs) -> tuple[dict[Group, float], bool]:
    saved = dict.fromkeys(found.groups, 0.0)
    for name, size in needs.held.items():
        numbers = [int(n) for n in found.channels[name].numbers if kept[n]]
        for group in found.groups:
            if {*group.units} & {*numbers}:
                saved[group] += size / len(numbers) / needs.amounts["pmu_bytes"]
    return saved, True


def narrowing(seed: int, limit: int, found: Couplings) -> Narrowing:
    scores = np.random.default_rng(seed).uniform(0.5, 1.5, found.units)
    return Narrowing(found, scores, ask, lambda n: n.amounts["pmu_bytes"] / limit, at_peak)


def lost(one: Narrowing, kept: Mask) -> float:
    return sum(one.loss(g, one.found.everything(), kept) for g in one.found.groups)


def every_choice(one: Narrowing) -> list[Mask]:
    masks = []
    for counts in product(*(range(1, len(g.units) + 1) for g in one.found.groups)):
        kept = one.found.everything()
        for group, count in zip(one.found.groups, counts, strict=True):
            kept[one.by_strength(list(group.units))[: len(group.units) - count]] = False
        masks.append(kept)
    return masks


@pytest.mark.parametrize("limit", [576, 448, 320])
def test_it_loses_little_more_than_the_best_choice(limit: int) -> None:
    for seed in range(3):
        one = narrowing(seed, limit, found())
        kept, needs = one.within(ask(found().graph), 1.0)
        assert one.over(needs) <= 1 and needs == ask(cut(found(), kept))
        fits = [mask for mask in every_choice(one) if one.over(ask(cut(found(), mask))) <= 1]
        assert lost(one, kept) <= 1.1 * min(lost(one, mask) for mask in fits) + 0.05
        for group in found().groups:
            gone = [unit for unit in group.units if not kept[unit]]
            more = kept.copy()
            more[gone[:1]] = True
            assert not gone or one.over(ask(cut(found(), more))) > 1, "a channel too much went"


def test_what_cannot_be_kept_goes_as_far_as_it_can() -> None:
    one = narrowing(0, 100, found())
    kept, needs = one.within(ask(found().graph), 1.0)
    assert needs.amounts["pmu_bytes"] == 64 * 2 + 64, "the input and a channel of the first layer"
    assert all(kept[list(group.units)].any() for group in found().groups)


class Halves(nn.Module):
    """Each half of the first layer's channels goes another way, so that one of each has to stay."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.upper = nn.Conv2d(2, 8, 3), nn.Conv2d(4, 4, 3, padding=1)
        self.last, self.dense = nn.Conv2d(8, 2, 1), nn.Linear(2, 3)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        one, other = self.first(images).relu().chunk(2, 1)
        both = torch.cat((self.upper(one).relu(), other), 1)
        return self.dense(self.last(both).relu().mean((2, 3)))  # type: ignore[no-any-return]


@pytest.mark.parametrize("seed", range(4))
def test_where_the_weakest_have_to_stay_others_go(seed: int) -> None:
    torch.manual_seed(1)
    graph = simplified(exported("halves", Halves().eval(), torch.zeros(1, 2, 6, 6)))
    halves = couplings(graph)
    one = narrowing(seed, 1, halves)
    group, kept = halves.groups[0], halves.everything()
    parts = group.units[:4], group.units[4:]
    one.scores[list(parts[0])] *= 0.01
    while (fewer := one.fewer(group, kept, 1.0)) is not None:
        assert halves.allows(fewer) and fewer.sum() < kept.sum()
        kept = fewer
    left = [unit for unit in group.units if kept[unit]]
    assert left == [max(part, key=lambda unit: one.scores[unit]) for part in parts]


def test_the_weakest_go() -> None:
    one = narrowing(3, 448, found())
    kept, _ = one.within(ask(found().graph), 1.0)
    for group in found().groups:
        stay, go = ([u for u in group.units if kept[u] == keeps] for keeps in (True, False))
        assert not go or max(one.scores[go]) < min(one.scores[stay])


def test_the_last_channels_cost_most() -> None:
    one = narrowing(0, 448, found())
    group = found().groups[1]
    masks = [found().everything()]
    for unit in one.by_strength(list(group.units)):
        masks.append(masks[-1].copy())
        masks[-1][unit] = False
    losses = [one.loss(group, a, b) for a, b in pairwise(masks)]
    assert losses == sorted(losses) and losses[-1] == np.inf
