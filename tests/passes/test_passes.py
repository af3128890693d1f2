"""Every pass keeps every output bit for bit, and does what it is for."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections import Counter

import numpy as np
import pytest

from pipeline import passes
from pipeline.errors import ThimbleError
from pipeline.graph import operators
from pipeline.graph.operator import Operator
from pipeline.graph.operators.concat import Concat
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.dense import Dense
from pipeline.passes._channels import constant_channels
from tests.comparing import equal
from tests.passes.growers import WAYS, random_network
from tests.passes.networks import Network

ALL = ["constants", "fold_reshape", "fold_pad", "dead_channels"]
SAMPLE = range(300)
"""Seeds of the networks that are tried by default."""


def network() -> Network:
    return Network(np.random.default_rng(5))


def kinds(network: Network, *names: str) -> list[str]:
    return [type(op).__name__ for op in passes.applied(network.graph(), names).operators]


def changed(seed: int) -> set[str]:
    """Try every pass on a random network, each alone and all together: outputs stay the same.

    Returns the names of those that made another network of it.
    """
    network = random_network(seed)
    before, images, found = network.graph(), network.images(), set[str]()
    expected = before.outputs(images)
    held = [name for op in before.operators for name in op.parameters]
    shares = len(set(held)) < len(held)  # then a layer may get its own, narrower ones
    for names in [*([name] for name in ALL), ALL]:
        after = passes.applied(before, names)
        what = f"seed {seed}, {names}"
        taken = images.reshape(-1, *after.tensors[after.input].shape)
        equal(after.outputs(taken), expected, what=what)
        assert after.macs <= before.macs or "fold_pad" in names, what  # padding counts as work
        assert "constants" in names or shares or after.weight_bytes <= before.weight_bytes, what
        assert "dead_channels" in names or passes.applied(after, names).hash == after.hash, what
        if len(names) == 1 and after.hash != passes.applied(before, []).hash:
            found |= {*names}
    return found


def test_outputs_stay_the_same() -> None:
    made = Counter(name for seed in SAMPLE for name in changed(seed))
    assert min(made[name] for name in ALL) > 20, made


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10_000, 15_000, 500))
def test_outputs_of_thousands_of_networks_stay_the_same(first: int) -> None:
    for seed in range(first, first + 500):
        changed(seed)


def concrete() -> set[type[Operator]]:
    """Every operator that a graph may have."""
    names = [f"{operators.__name__}.{m.name}" for m in pkgutil.iter_modules(operators.__path__)]
    held = [each for name in names for each in vars(importlib.import_module(name)).values()]
    classes = {each for each in held if inspect.isclass(each) and issubclass(each, Operator)}
    return {each for each in classes if not inspect.isabstract(each) and each.__name__ != "Pool2d"}


def test_the_networks_have_every_operator() -> None:
    """A new operator needs a way to grow it in tests/passes/growers.py."""
    assert {kind for kind, _ in WAYS} == concrete()
    made = Counter(type(op) for seed in SAMPLE for op in random_network(seed).operators)
    assert min(made[kind] for kind in concrete()) > 20, made


def test_the_channels_that_padding_adds_are_counted() -> None:
    """As in the shortcut of BlazeFace: what follows has weights for more channels than there were
    before; what is added is 0, whatever the others are."""
    padded = network().conv(3, dead=0).pad((0, 0), (0, 0), (1, 2)).conv(4, dead=0)
    padded.constants["conv0.weight"][1] = 0
    padded.constants["conv0.bias"][1] = 5000
    values = constant_channels(padded.graph())
    zero = padded.tensors["conv0"].zero_point
    assert np.isnan(values["pad1"][[1, 3]]).all()
    assert values["pad1"][[0, 4, 5]].tolist() == [zero] * 3
    assert values["pad1"][2] == values["conv0"][1] != zero
    images = padded.images(20)
    after = passes.applied(padded.graph(), ALL)
    equal(after.outputs(images), padded.graph().outputs(images))


def test_a_sum_of_constants_becomes_a_parameter_of_what_takes_one() -> None:
    net = network()
    one, two = (net.constant(name, net.rng.integers(-9, 9, net.here)) for name in ("one", "two"))
    net.add(one, two).lookup()
    (after,) = passes.applied(net.add("x").graph(), ["constants"]).operators
    assert (after.inputs, after.parameters) == (("x",), ("lookup1",))


def test_constants_stay_where_an_activation_is_needed() -> None:
    net = network()
    one, two = (net.constant(name, net.rng.integers(-9, 9, net.here)) for name in ("one", "two"))
    net.add(one, two).conv(2)
    assert kinds(net, *ALL) == ["Add", "Conv2d"]


def test_no_tensor_is_joined_with_itself() -> None:
    """A reshape that does nothing is what makes two of one."""
    net = network().lookup()
    net.reshape(*net.here)
    net.append(Concat("joined", ("lookup0", "reshape1"), "joined", axis=2), same=True)
    assert kinds(net, *ALL) == ["Lookup", "Reshape", "Concat"]


def test_all_passes_are_known_and_others_refused() -> None:
    assert sorted(ALL) == passes.known()
    with pytest.raises(ThimbleError, match="there is no pass magic; have constants, dead_channels"):
        passes.applied(network().conv(2).graph(), ["magic"])


def test_a_pad_becomes_the_padding_of_every_reader() -> None:
    padded = network().pad((1, 2), (0, 1), (0, 0)).conv(2, padding=(1, 0, 0, 2))
    pad, before = padded.operators
    assert kinds(padded, "fold_pad") == ["Conv2d"]
    (after,) = passes.applied(padded.graph(), ["fold_pad"]).operators
    assert isinstance(before, Conv2d) and isinstance(after, Conv2d)
    added = np.array(pad.padding[:2]).reshape(-1)  # type: ignore[attr-defined]
    assert after.padding == tuple(np.array(before.padding) + added)


@pytest.mark.parametrize("images", [False, True])
def test_a_signals_pad_becomes_the_padding_of_its_convolution(images: bool) -> None:
    """(l, c), as TensorFlow pads them; (h, w, c) that is only cut up otherwise keeps its pad."""
    net = network()
    height, width, channels = net.here
    net.reshape(height * width, channels).pad((2, 0), (0, 0))
    net.reshape(*((2, height * width // 2 + 1) if images else (1, height * width + 2)), channels)
    net.conv(3, kernel=(1, 2))
    after = passes.applied(net.graph(), ["fold_reshape", "fold_pad"])
    found = [type(op).__name__ for op in after.operators]
    assert found == [*["Pad", "Reshape"] * images, "Conv2d"]
    given, takes = net.images(20), after.tensors[after.input].shape  # what it was reshaped to first
    expected = net.graph().outputs(given)
    equal(after.outputs(given.reshape(20, *takes)), expected)


def test_a_pad_stays_in_front_of_a_pooling() -> None:
    assert (
        kinds(network().pad((1, 1), (1, 1), (0, 0)).pool(average=False).conv(2, 1), "fold_pad")[0]
        == "Pad"
    )


def test_a_dense_layer_takes_its_input_in_any_shape() -> None:
    flat = network().conv(2).flat().dense(3)
    after = passes.applied(flat.graph(), ["fold_reshape"])
    assert [type(op).__name__ for op in after.operators] == ["Conv2d", "Dense"]
    assert after.tensors[after.operators[1].parameters[0]].shape == (
        3,
        *flat.tensors["conv0"].shape,
    )


def test_a_reshape_at_the_end_stays() -> None:
    assert kinds(network().conv(2).flat(), "fold_reshape") == ["Conv2d", "Reshape"]


def test_channels_without_weights_go_through_all_that_keeps_channels_apart() -> None:
    """conv -> depthwise -> pool -> lookup -> conv: a channel of zeros ends in the last biases."""
    chain = network().conv(4, dead=0).depthwise(1, dead=0, clip=(-128, 127)).pool(True).lookup()
    chain.conv(3, 1, dead=0)
    chain.constants["conv0.weight"][2] = 0
    after = passes.applied(chain.graph(), ["dead_channels"])
    widths = [after.tensors[op.output].shape[-1] for op in after.operators]
    assert widths == [3, 3, 3, 3, 3]
    assert after.operators[1].groups == 3  # type: ignore[attr-defined]
    images = chain.images(50)
    equal(after.outputs(images), chain.graph().outputs(images))


def test_a_constant_other_than_zero_stays_where_padding_would_show_it() -> None:
    for padding, wanted in (((1, 1, 1, 1), 4), ((0, 0, 0, 0), 3)):
        chain = network().conv(4, dead=0).conv(2, dead=0, padding=padding)
        chain.constants["conv0.weight"][2] = 0
        chain.constants["conv0.bias"][2] = 5000
        after = passes.applied(chain.graph(), ["dead_channels"])
        assert after.tensors["conv0"].shape[-1] == wanted


def test_channels_that_nobody_reads_are_not_computed() -> None:
    chain = network().conv(5, dead=0).depthwise(2, dead=0).conv(2, 1, dead=0)
    chain.constants["conv2.weight"][..., 6:8] = 0  # both outputs of depthwise channel 3
    chain.constants["conv2.weight"][..., 1] = 0  # one of the two of channel 0
    after = passes.applied(chain.graph(), ["dead_channels"])
    assert [after.tensors[f].shape[-1] for f in ("conv0", "conv1", "conv2")] == [4, 8, 2]


def test_dense_layers_lose_units_too() -> None:
    chain = network().conv(3, dead=0).dense(6, dead=0).dense(2, dead=0)
    chain.constants["dense1.weight"][[1, 4]] = 0
    after = passes.applied(chain.graph(), ["dead_channels"])
    assert after.tensors["dense1"].shape == (4,)
    assert isinstance(after.operators[1], Dense)
    images = chain.images(50)
    equal(after.outputs(images), chain.graph().outputs(images))


def test_something_is_left_of_a_network_of_zeros() -> None:
    chain = network().conv(3).conv(2).dense(2)
    for name in chain.constants:
        chain.constants[name][:] = 0
    after = passes.applied(chain.graph(), ALL)
    equal(after.outputs(chain.images()), chain.graph().outputs(chain.images()))
    assert all(min(after.tensors[op.output].shape) >= 1 for op in after.operators)
