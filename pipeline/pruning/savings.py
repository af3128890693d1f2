"""Estimate of what a network saves for each channel less of a group of layers."""

from collections.abc import Collection
from math import prod

from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import FloatGraph
from pipeline.pruning.couplings import Couplings, Group, Mask
from pipeline.pruning.cut import cut
from pipeline.pruning.planner import Needs

BIAS_BYTES = 4


def savings(found: Couplings, kept: Mask, needs: Needs, limit: str) -> dict[Group, float]:
    """Return by group, in the unit of ``limit`` (of latency, in products), for the network with the
    units in ``kept``, which needs ``needs``."""
    if limit == "pmu_bytes":
        saved = {group: _at_peak(found, kept, needs, group) for group in found.groups}
        return _everywhere(found, saved, needs.level) or saved
    whole, saved = _size(cut(found, kept), limit), {}
    for group in found.groups:
        fewer = kept.copy()
        fewer[max(unit for unit in group.units if kept[unit])] = False
        less = found.allows(fewer)
        saved[group] = whole - _size(cut(found, fewer), limit) if less else 0.0
    return saved


def _everywhere(
    found: Couplings, saved: dict[Group, float], level: Collection[frozenset[str]]
) -> dict[Group, float]:
    """Select groups that are live whenever the peak is reached: others don't lower it alone."""
    names = {
        group: {name for name, each in found.channels.items() if {*each.numbers} & {*group.units}}
        for group in saved
    }
    return {g: n for g, n in saved.items() if not any(map(names[g].isdisjoint, level))}


def _at_peak(found: Couplings, kept: Mask, needs: Needs, group: Group) -> float:
    """Return a channel's part of the tensors that are held at the peak."""
    own, total = set(group.units), 0.0
    for tensor, size in needs.held.items():
        if tensor in found.channels:
            alive = [int(n) for n in found.channels[tensor].numbers if kept[n]]
            total += size * sum(n in own for n in alive) / len(alive)
    return total / sum(bool(kept[unit]) for unit in group.units)


def _size(network: FloatGraph, limit: str) -> float:
    total = 0
    for node in network.nodes:
        if isinstance(node, nodes.Weighted):
            places = prod(network.shapes[node.output][:-1]) or 1
            bytes_ = node.weights.size + BIAS_BYTES * len(node.bias)
            total += bytes_ if limit == "weight_bytes" else node.weights.size * places
    return float(total)
