"""Every pass keeps every output bit for bit, and does what it is for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import passes
from pipeline.errors import ThimbleError
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.dense import Dense
from tests.passes.networks import Network, random_network

ALL = ["constants", "fold_reshape", "fold_pad", "dead_channels"]


def network() -> Network:
    return Network(np.random.default_rng(5))


def kinds(network: Network, *names: str) -> list[str]:
    return [type(op).__name__ for op in passes.applied(network.graph(), names).operators]


@pytest.mark.parametrize("names", [[name] for name in ALL] + [ALL])
@given(st.integers(0, 1 << 40))
@settings(max_examples=150, deadline=None)
def test_outputs_stay_the_same(names: list[str], seed: int) -> None:
    network = random_network(seed)
    before = network.graph()
    after = passes.applied(before, names)
    images = network.images()
    assert np.array_equal(after.outputs(images), before.outputs(images))
    assert after.macs <= before.macs or "fold_pad" in names  # padding counts as work
    assert after.weight_bytes <= before.weight_bytes
    assert "dead_channels" in names or passes.applied(after, names).hash == after.hash


def test_all_passes_are_known_and_others_refused() -> None:
    assert sorted(ALL) == passes.known()
    with pytest.raises(ThimbleError, match="there is no pass magic; have constants, dead_channels"):
        passes.applied(network().conv(2).graph(), ["magic"])


def test_a_pad_becomes_the_padding_of_every_reader() -> None:
    padded = network().pad().conv(2, padding=(1, 0, 0, 2))
    pad, before = padded.operators
    assert kinds(padded, "fold_pad") == ["Conv2d"]
    (after,) = passes.applied(padded.graph(), ["fold_pad"]).operators
    assert isinstance(before, Conv2d) and isinstance(after, Conv2d)
    added = np.array(pad.padding[:2]).reshape(-1)  # type: ignore[attr-defined]
    assert after.padding == tuple(np.array(before.padding) + added)


def test_a_pad_stays_in_front_of_a_pooling() -> None:
    assert kinds(network().pad().pool(average=False).conv(2, 1), "fold_pad")[0] == "Pad"


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
    assert np.array_equal(after.outputs(images), chain.graph().outputs(images))


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
    assert [after.tensors[f].shape[-1] for f in ("conv0", "depthwise1", "conv2")] == [4, 8, 2]


def test_dense_layers_lose_units_too() -> None:
    chain = network().conv(3, dead=0).dense(6, dead=0).dense(2, dead=0)
    chain.constants["dense1.weight"][[1, 4]] = 0
    after = passes.applied(chain.graph(), ["dead_channels"])
    assert after.tensors["dense1"].shape == (4,)
    assert isinstance(after.operators[1], Dense)
    images = chain.images(50)
    assert np.array_equal(after.outputs(images), chain.graph().outputs(images))


def test_something_is_left_of_a_network_of_zeros() -> None:
    chain = network().conv(3).conv(2).dense(2)
    for name in chain.constants:
        chain.constants[name][:] = 0
    after = passes.applied(chain.graph(), ALL)
    assert np.array_equal(after.outputs(chain.images()), chain.graph().outputs(chain.images()))
    assert all(min(after.tensors[op.output].shape) >= 1 for op in after.operators)
