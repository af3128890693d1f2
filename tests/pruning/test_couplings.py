"""Channels that are tied to one another, and a network without some, which is the one with them at
zero; limits are kept, and nothing more goes than has to, compared with all choices of channels."""

from collections.abc import Callable
from functools import cache
from itertools import pairwise, product
from math import prod

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
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
from pipeline.pruning.shares import completed, strength
from tests.importers.support import shaken
from tests.importers.test_torch_networks import FEW, branches, networks
from tests.importers.torch_modules import Of
from tests.tiers import quick


def graph_of(module: nn.Module, shape: tuple[int, ...]) -> FloatGraph:
    return simplified(exported("net", shaken(module).eval(), torch.zeros(1, *shape)))


def some(found: Couplings, seed: int, share: float = 0.5) -> Mask:
    """Random units, and one of each tensor that would have none."""
    kept = np.random.default_rng(seed).random(found.units) < share
    return completed(found, kept, strength(found))


@torch.no_grad()
def masked(found: Couplings, kept: Mask, frames: torch.Tensor) -> torch.Tensor:
    """Evaluate the whole graph for ``frames`` (n, *input shape) with the activations of all
    channels but the kept ones at zero."""
    graph = found.graph

    def evaluate(index: int, inputs: list[torch.Tensor]) -> torch.Tensor:
        node = graph.nodes[index]
        result, channels = node.evaluate(inputs), found.channels[node.output]
        shape = [1] * result.ndim
        shape[1 + channels.axis] = -1
        mask = torch.from_numpy(kept[channels.numbers]).to(result.dtype)
        return result * mask.reshape(shape)

    return graph.activation(graph.output, frames, evaluate)


def agrees(graph: FloatGraph, seed: int) -> FloatGraph:
    found = couplings(graph)
    kept = some(found, seed)
    small = cut(found, kept)
    shape = graph.shapes[graph.input]
    frames = torch.rand(3, *shape, generator=torch.Generator().manual_seed(seed)) * 4 - 2
    torch.testing.assert_close(small.evaluate(frames), masked(found, kept, frames))
    gone = {n for n in range(found.units) if not kept[n]}
    for name, units in found.layers.items():
        (node,) = (each for each in small.nodes if each.name == name)
        assert len(node.weights) == len([unit for unit in units if unit not in gone])  # type: ignore[attr-defined]
    return small


@pytest.mark.parametrize("count", quick(0, [5, 300], ci=1))
def test_random_networks_without_random_channels(count: int) -> None:
    @settings(FEW, max_examples=count)
    @given(networks(), st.integers(0, 99))
    def check(found: tuple[nn.Module, tuple[int, int, int]], seed: int) -> None:
        agrees(graph_of(*found), seed)

    check()


def flat(head: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), head)


def shuffled(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    y = module.conv(x)
    parts = y.reshape(y.shape[0], 2, 4, *y.shape[2:]).transpose(1, 2)
    return module.after(parts.reshape(y.shape))


def sliced(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    y = torch.relu(module.conv(x))
    return module.after(y[:, 2:6] + y[:, 4:8])


def widened(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """A residual network's shortcut without weights: channels of zeros are added."""
    y = torch.nn.functional.pad(module.first(x), (0, 0, 0, 0, 2, 2))
    return module.after(torch.relu(y + module.conv(x)))


def squeezed(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    y = nn.functional.silu(module.conv(x))
    gate = module.up(torch.relu(module.down(y.mean((2, 3), keepdim=True))))
    return module.after(y * torch.sigmoid(gate))


def spatial(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    y = module.conv(x)
    return module.after(y * torch.sigmoid(module.one(y)))


SHAPE = (3, 8, 8)
# the module, and how many channels of each group of layers can be pruned
CASES: dict[str, tuple[Callable[[], nn.Module], list[int]]] = {
    "a chain, flattened": (
        lambda: flat(nn.Sequential(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(54, 4))), [6]),
    "a mean": (
        lambda: flat(nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 4))), [6]),
    "depthwise": (
        lambda: flat(nn.Sequential(nn.Conv2d(6, 6, 3, groups=6), nn.Conv2d(6, 4, 1))), [6]),
    "depthwise, two each": (
        lambda: flat(nn.Sequential(nn.Conv2d(6, 12, 3, groups=6), nn.Conv2d(12, 4, 1))), [6]),
    "three groups": (
        lambda: flat(nn.Sequential(nn.Conv2d(6, 9, 3, groups=3), nn.Conv2d(9, 4, 1))), [3]),
    "a sum": (lambda: nn.Sequential(
        branches(nn.Conv2d(3, 8, 3), nn.Conv2d(3, 8, 3), "add"), nn.Conv2d(8, 5, 1)), [8]),
    "a concatenation": (lambda: nn.Sequential(
        branches(nn.Conv2d(3, 8, 3), nn.Conv2d(3, 6, 3), "concatenate"), nn.Conv2d(14, 5, 1)),
        [8, 6]),
    "squeeze and excite": (lambda: Of(squeezed, conv=nn.Conv2d(3, 8, 3), down=nn.Conv2d(8, 4, 1),
                                      up=nn.Conv2d(4, 8, 1), after=nn.Conv2d(8, 5, 1)), [8, 4]),
    "channels in another order": (
        lambda: Of(shuffled, conv=nn.Conv2d(3, 8, 3), after=nn.Conv2d(8, 5, 3)), []),
    "some channels twice": (
        lambda: Of(sliced, conv=nn.Conv2d(3, 8, 3), after=nn.Conv2d(4, 5, 3)), [4]),
    "zeros beside": (lambda: Of(widened, first=nn.Conv2d(3, 4, 3), conv=nn.Conv2d(3, 8, 3),
                                after=nn.Conv2d(8, 5, 3)), [4]),
    "a map for all channels": (lambda: Of(spatial, conv=nn.Conv2d(3, 8, 3), one=nn.Conv2d(8, 1, 1),
                                          after=nn.Conv2d(8, 5, 3)), [8]),
    "channels in rows": (
        lambda: Of(lambda m, x: m.after(m.conv(x).transpose(1, 3)), conv=nn.Conv2d(3, 8, 3),
                   after=nn.Conv2d(6, 5, 3)), []),
    "a sum over all": (lambda: Of(lambda m, x: m.conv(x).softmax(1), conv=nn.Conv2d(3, 8, 3)), []),
}  # fmt: skip

CHOSEN = ("depthwise", "a concatenation", "squeeze and excite")


@pytest.mark.parametrize("name", quick(CHOSEN, CASES))
def test_what_can_be_pruned(name: str) -> None:
    make, sizes = CASES[name]
    graph = graph_of(make(), SHAPE)
    assert [len(group.units) for group in couplings(graph).groups] == sizes
    for seed in range(3):
        agrees(graph, seed)


def test_layers_that_share_a_channel_are_one_group() -> None:
    join = branches(nn.Conv2d(3, 4, 3), nn.Conv2d(3, 4, 3), "concatenate")
    both = branches(join, nn.Conv2d(3, 8, 3), "add")
    found = couplings(graph_of(nn.Sequential(both, nn.Conv2d(8, 5, 1)), SHAPE))
    assert [len(group.layers) for group in found.groups] == [3]
    kept = found.everything()
    kept[list(found.groups[0].units[:4])] = False
    assert not found.allows(kept), "the first convolution would have no channels"
    kept[found.groups[0].units[0]] = True
    assert found.allows(kept)


def test_a_slice_keeps_a_channel() -> None:
    """Slice eight channels but the first two: they alone would leave nothing to add."""
    found = couplings(graph_of(CASES["some channels twice"][0](), SHAPE))
    kept = ~found.everything()
    kept[found.layers["conv"][:2]] = True
    kept = completed(found, kept, strength(found)) & kept
    assert not found.allows(kept)
    kept[found.layers["conv"][2]] = True
    assert cut(found, completed(found, kept, strength(found))).nodes


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
    return Narrowing(found, scores, ask, ask, lambda n: n.amounts["pmu_bytes"] / limit, at_peak)


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
            stay = [unit for unit in group.units if kept[unit]]
            assert not gone or max(one.scores[gone]) < min(one.scores[stay]), "not the weakest"
            more = kept.copy()
            more[gone[:1]] = True
            assert not gone or one.over(ask(cut(found(), more))) > 1, "a channel too much went"


def test_what_cannot_be_kept_goes_as_far_as_it_can() -> None:
    one = narrowing(0, 100, found())
    kept, needs = one.within(ask(found().graph), 1.0)
    assert needs.amounts["pmu_bytes"] == 64 * 2 + 64, "the input and a channel of the first layer"
    assert all(kept[list(group.units)].any() for group in found().groups)


def halved(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Each half of the first layer's channels goes another way, so that one of each has to stay."""
    one, other = m.first(x).relu().chunk(2, 1)
    both = torch.cat((m.upper(one).relu(), other), 1)
    return m.dense(m.last(both).relu().mean((2, 3)))


@pytest.mark.parametrize("seed", range(4))
def test_where_the_weakest_have_to_stay_others_go(seed: int) -> None:
    torch.manual_seed(1)
    layers = {"first": nn.Conv2d(2, 8, 3), "upper": nn.Conv2d(4, 4, 3, padding=1)}
    network = Of(halved, **layers, last=nn.Conv2d(8, 2, 1), dense=nn.Linear(2, 3))
    halves = couplings(graph_of(network, (2, 6, 6)))
    one = narrowing(seed, 1, halves)
    group, kept = halves.groups[0], halves.everything()
    parts = group.units[:4], group.units[4:]
    one.scores[list(parts[0])] *= 0.01
    while (fewer := one.fewer(group, kept, 1.0)) is not None:
        assert halves.allows(fewer) and fewer.sum() < kept.sum()
        kept = fewer
    left = [unit for unit in group.units if kept[unit]]
    assert left == [max(part, key=lambda unit: one.scores[unit]) for part in parts]


def test_the_last_channels_cost_most() -> None:
    one = narrowing(0, 448, found())
    group = found().groups[1]
    masks = [found().everything()]
    for unit in one.by_strength(list(group.units)):
        masks.append(masks[-1].copy())
        masks[-1][unit] = False
    losses = [one.loss(group, a, b) for a, b in pairwise(masks)]
    assert losses == sorted(losses) and losses[-1] == np.inf
