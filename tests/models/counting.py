"""Costs of a network, counted apart from the library: by hooks, and on torch.export's graph."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import yaml
from torch import nn
from torch.fx import Node

from pipeline import config
from pipeline.models.network import Model

aten = torch.ops.aten
SUMS = {aten.add.Tensor, aten.mul.Tensor}
"""Elementwise operators of two tensors: the result may replace an operand that dies."""
MEANS = {aten.avg_pool2d.default, aten.adaptive_avg_pool2d.default}
PRODUCTS = {aten.conv2d.default, aten.linear.default}
POOLS = MEANS | {aten.max_pool2d.default}
JOINS = {aten.cat.default}
ALIASES = {
    *(aten.batch_norm.default, aten.flatten.using_ints, aten.pad.default),
    *(aten.relu.default, aten.hardtanh.default, aten.silu.default, aten.hardswish.default),
    *(aten.tanh.default, aten.sigmoid.default, aten.hardsigmoid.default),
}
"""Fused into the operator before or after them: no tensor of their own (TRUTHS, Pex's rules)."""


def member(name: str, **changes: object) -> Model:
    """The model of ``conf/model/NAME.yaml`` with other values for some keys."""
    node = yaml.safe_load(Path(f"conf/model/{name}.yaml").read_text())
    model = config.instantiate(node | changes)
    assert isinstance(model, Model)
    return model


def on_meta(model: Model) -> tuple[nn.Module, torch.Tensor]:
    """The network and an input, without memory: VGG16's weights are half a gigabyte."""
    with torch.device("meta"):
        return model.build().eval(), model.example()


def exported(model: Model) -> torch.export.ExportedProgram:
    network, example = on_meta(model)
    return torch.export.export(network, (example,))


@dataclass
class Counts:
    """``macs`` of convolutions and dense layers; ``weight_bytes``: int8 weights, int32 biases."""

    macs: int = 0
    weight_bytes: int = 0
    parameters: int = 0
    values: int = 0
    output: tuple[int, ...] = ()


def count(model: Model) -> Counts:
    return count_module(*on_meta(model))


def count_module(network: nn.Module, example: torch.Tensor) -> Counts:
    counts = Counts()

    def hook(layer: nn.Module, _: object, output: torch.Tensor) -> None:
        assert isinstance(layer, nn.Conv2d | nn.Linear)
        pixels = math.prod(output.shape[2:])
        counts.macs += pixels * layer.weight.numel()
        counts.weight_bytes += layer.weight.numel() + 4 * len(layer.weight)

    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.register_forward_hook(hook)
    counts.output = tuple(network(example).shape)
    counts.parameters = sum(p.numel() for p in network.parameters())
    state = network.state_dict()
    counts.values = sum(v.numel() for k, v in state.items() if not k.endswith("batches_tracked"))
    return counts


@dataclass(frozen=True)
class Memory:
    """``peak_bytes``: most bytes of int8 tensors alive at once, one operator after another in the
    order of the program. ``written``: elements of all outputs. ``elementwise``: elements added,
    multiplied or averaged, which Pex counts as multiply-accumulates too."""

    peak_bytes: int
    written: int
    elementwise: int


COMPUTED: dict[str, Memory] = {}
"""By the model's repr: tracing takes a second."""


def memory(model: Model) -> Memory:
    if repr(model) not in COMPUTED:
        COMPUTED[repr(model)] = computed(model)
    return COMPUTED[repr(model)]


def computed(model: Model) -> Memory:
    nodes = list(exported(model).graph.nodes)
    owner = {node: owner_of(node) for node in nodes if sized(node)}
    first = {tensor: index for index, tensor in enumerate(nodes) if owner.get(tensor) is tensor}
    last = dict(first)
    for index, node in enumerate(nodes):
        for tensor in operands(node, owner):
            last[tensor] = index
    peak, written, elementwise = 0, 0, 0
    for index, node in enumerate(nodes):
        if owner.get(node) is not node:
            continue
        alive = [tensor for tensor in first if first[tensor] < index <= last[tensor]]
        replaced = node.target in SUMS and any(
            last[t] == index and size(t) == size(node) for t in operands(node, owner)
        )
        peak = max(peak, sum(map(size, alive)) + (0 if replaced else size(node)))
        if node.target in PRODUCTS | POOLS:
            written += size(node)
        if node.target in SUMS:
            elementwise += size(node)
        if node.target in MEANS:
            elementwise += sum(map(size, operands(node, owner)))
    return Memory(peak, written, elementwise)


def sized(node: Node) -> bool:
    """Check whether it is an activation: the input, or computed from it."""
    if node.op == "placeholder":
        return not node.name.startswith(("p_", "b_", "c_"))
    return node.op == "call_function"


def owner_of(node: Node) -> Node:
    """The node whose memory ``node`` lives in."""
    while node.target in ALIASES:
        node = node.all_input_nodes[0]
    known = PRODUCTS | POOLS | SUMS | JOINS
    assert node.op == "placeholder" or node.target in known, f"{node.target} is not known"
    return node


def operands(node: Node, owner: dict[Node, Node]) -> Iterator[Node]:
    return (owner[each] for each in node.all_input_nodes if each in owner)


def size(node: Node) -> int:
    return int(math.prod(node.meta["val"].shape))
