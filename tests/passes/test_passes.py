"""Every pass keeps every output bit for bit, and does what it is for."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from pipeline import passes
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operators.along import ArgMax, LogSoftmax, WideSoftmax
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.lookup import Interpolate
from pipeline.graph.operators.recurrent import LstmHidden, LstmMemory
from pipeline.passes._channels import constant_channels
from pipeline.passes._edit import edited
from tests.codegen.support import frames
from tests.comparing import equal
from tests.contracts.test_operators import EVERY
from tests.graphs import Chained, Net
from tests.passes.growers import WAYS, random_network
from tests.several import recalling

ALL = ["constants", "fold_reshape", "fold_pad", "fold_mixed", "fold_tables", "dead_channels"]
SAMPLE = range(180)
"""Seeds of the networks that are tried by default."""
VALID = {"padding": (0, 0, 0, 0)}


def network() -> Chained:
    return Chained(Net((6, 5, 3), np.random.default_rng(5)))


def same(before: Graph, names: Sequence[str] = ALL, **about: object) -> Graph:
    """After these passes, which keep all outputs; of its input they may keep the elements alone."""
    after, given = passes.applied(before, names), frames(before, 5)
    taken = given.reshape(-1, *after.tensors[after.input].shape)
    equal(after.evaluate(taken), before.evaluate(given), passes=names, **about)
    return after


def kinds(graph: Graph) -> list[str]:
    return [type(op).__name__ for op in graph.operators]


def changed(seed: int) -> set[str]:
    """Try every pass on a random network, each alone and all together.

    Returns the names of those that made another network of it.
    """
    drawn, found = random_network(seed).graph(), set[str]()
    if seed % 4 == 3:
        drawn = recalling(drawn, np.random.default_rng(seed))
    before = edited(drawn, drawn.operators)  # without what the output does not need
    held = [name for op in before.operators for name in op.parameters]
    shares = len(set(held)) < len(held)  # then a layer may get its own, narrower ones
    for names in [*([name] for name in ALL), ALL]:
        what = f"seed {seed}, {names}"
        after = same(before, names, seed=seed)
        assert after.macs <= before.macs or "fold_pad" in names, what  # padding counts as work
        assert "constants" in names or shares or after.weight_bytes <= before.weight_bytes, what
        assert "dead_channels" in names or passes.applied(after, names).hash == after.hash, what
        if len(names) == 1 and after.hash != before.hash:
            found |= {*names}
    return found


def test_outputs_stay_the_same() -> None:
    made = Counter(name for seed in SAMPLE for name in changed(seed))
    assert min(made[name] for name in ALL if name != "fold_mixed") > 2, made


@pytest.mark.parametrize(
    ("rows", "clip", "folds"), [(3, None, True), (2, None, True), (3, 9, False)]
)
def test_depthwise_convolutions_of_several_heights_are_one(
    rows: int, clip: int | None, folds: bool
) -> None:
    """Over slices that begin at a row and a channel; not where their activations differ."""
    net, outs = Net((5, 1, 7), np.random.default_rng(1)), list[str]()
    for channels, first, height in ((3, 0, 5), (4, 5 - rows, rows)):
        net.last = net.image
        net.rearrange((height, 1, channels), starts=(first, 0, 3 * bool(first)))
        name = net.depthwise((height, 1), padding=(0, 0, 0, 0))
        ends = None if clip is None or first else (-clip, clip)
        net.operators[-1] = replace(net.operators[-1], clip=ends)
        net.tensors[name] = replace(net.tensors[name], scale=(0.1,), zero_point=3)
        outs.append(name)
    net.concat(tuple(outs))
    assert kinds(same(net.graph(), ["fold_mixed"]))[-1] == ("Conv2d" if folds else "Concat")


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10_000, 12_000, 500))
def test_outputs_of_thousands_of_networks_stay_the_same(first: int) -> None:
    for seed in range(first, first + 500):
        changed(seed)


def test_the_networks_have_every_operator() -> None:
    """A new operator needs a way to grow it in tests/passes/growers.py."""
    alone = {ArgMax, Interpolate, LogSoftmax, LstmHidden, LstmMemory, WideSoftmax}
    every = set(EVERY) - alone
    assert {kind for kind, _ in WAYS} == every
    made = Counter(type(op) for seed in SAMPLE for op in random_network(seed).operators)
    assert min(made[kind] for kind in every) > 15, made


def test_the_channels_that_padding_adds_are_counted() -> None:
    """As in the shortcut of BlazeFace: what follows has weights for more channels than there were
    before; what is added is 0, whatever the others are."""
    padded = network().conv(3).pad(((0, 0), (0, 0), (1, 2))).conv(4)
    padded.constants["conv0.weight"][1] = 0
    padded.constants["conv0.bias"][1] = 20_000
    values = constant_channels(padded.graph())
    zero = padded.tensors["conv0"].zero_point
    assert np.isnan(values["pad1"][[1, 3]]).all()
    assert values["pad1"][[0, 4, 5]].tolist() == [zero] * 3
    assert values["pad1"][2] == values["conv0"][1] != zero
    same(padded.graph())


def two_constants() -> Chained:
    net = network()
    for name in ("one", "two"):
        net.constant(name, net.rng.integers(-9, 9, net.here))
    return net.plus("one", "two")


def test_a_sum_of_constants_becomes_a_parameter_of_what_takes_one() -> None:
    net = two_constants().lookup().plus("image", "lookup1")
    (after,) = same(net.graph(), ["constants"]).operators
    assert (after.inputs, after.parameters) == (("image",), ("lookup1",))
    assert kinds(same(two_constants().conv(2).graph())) == ["Add", "Conv2d"]


def test_no_tensor_is_joined_with_itself() -> None:
    """A reshape that does nothing is what makes two of one."""
    net = network().lookup().reshape((6, 5, 3)).concat(("lookup0", "reshape1"))
    assert kinds(same(net.graph())) == ["Lookup", "Reshape", "Concat"]


def test_a_value_times_its_sigmoid_is_one_table() -> None:
    """But not one with what has several constants, or is read elsewhere, too."""
    net = network().conv(3).lookup().lookup().times("lookup1", "lookup2").slopes((1, 1, 1))
    assert kinds(same(net.graph())) == ["Conv2d", "Lookup"]
    net = network().conv(3).lookup().slopes((3,)).plus("lookup1", "prelu2")
    assert kinds(same(net.graph())) == ["Conv2d", "Lookup", "Prelu", "Add"]


def test_all_passes_are_known_and_others_refused() -> None:
    assert sorted(ALL) == passes.known()
    with pytest.raises(ThimbleError, match="there is no pass magic; have constants, dead_channels"):
        passes.applied(network().conv(2).graph(), ["magic"])


def test_a_pad_becomes_the_padding_of_every_reader() -> None:
    padded = network().pad(((1, 2), (0, 1), (0, 0))).conv(2, padding=(1, 0, 0, 2))
    (after,) = same(padded.graph(), ["fold_pad"]).operators
    assert isinstance(after, Conv2d) and after.padding == (1 + 1, 0 + 2, 0 + 0, 2 + 1)
    pooled = network().pad(((1, 1), (1, 1), (0, 0))).maximum((2, 2)).conv(2, (1, 1))
    assert kinds(same(pooled.graph(), ["fold_pad"]))[0] == "Pad"


@pytest.mark.parametrize("images", [False, True])
def test_a_signals_pad_becomes_the_padding_of_its_convolution(images: bool) -> None:
    """(l, c), as TensorFlow pads them; (h, w, c) that is only cut up otherwise keeps its pad."""
    net = network().reshape((30, 3)).pad(((2, 0), (0, 0)))
    net.reshape((2, 16, 3) if images else (1, 32, 3)).conv(3, (1, 2), **VALID)
    after = same(net.graph(), ["fold_reshape", "fold_pad"])
    assert kinds(after) == [*["Pad", "Reshape"] * images, "Conv2d"]


def test_a_dense_layer_takes_its_input_in_any_shape() -> None:
    flat = network().conv(2).reshape((60,))
    assert kinds(same(flat.graph(), ["fold_reshape"])) == ["Conv2d", "Reshape"]  # the end stays
    after = same(flat.dense(3).graph(), ["fold_reshape"])
    assert kinds(after) == ["Conv2d", "Dense"]
    assert after.tensors[after.operators[1].parameters[0]].shape == (3, 6, 5, 2)


def widths(graph: Graph) -> list[int]:
    """After channels that decide nothing have been left out."""
    after = same(graph, ["dead_channels"])
    return [after.tensors[op.output].shape[-1] for op in after.operators]


def test_channels_without_weights_go_through_all_that_keeps_channels_apart() -> None:
    """conv -> depthwise -> pool -> lookup -> conv: a channel of zeros ends in the last biases."""
    chain = network().conv(4).depthwise((2, 2), **VALID).mean((2, 2), stride=(1, 2)).lookup()
    chain.conv(3, (1, 1)).constants["conv0.weight"][2] = 0
    assert widths(chain.graph()) == [3, 3, 3, 3, 3]


def test_a_constant_other_than_zero_stays_where_padding_would_show_it() -> None:
    for padding, wanted in (((1, 1, 1, 1), 4), ((0, 0, 0, 0), 3)):
        chain = network().conv(4).conv(2, padding=padding)
        chain.constants["conv0.weight"][2] = 0
        chain.constants["conv0.bias"][2] = 20_000
        assert widths(chain.graph())[0] == wanted


def test_channels_that_nobody_reads_are_not_computed() -> None:
    chain = network().conv(5).depthwise((2, 2), 2).conv(2, (1, 1))
    chain.constants["conv2.weight"][..., 6:8] = 0  # both outputs of depthwise channel 3
    chain.constants["conv2.weight"][..., 1] = 0  # one of the two of channel 0
    assert widths(chain.graph()) == [4, 8, 2]


def test_dense_layers_lose_units_too_and_something_is_left_of_zeros() -> None:
    chain = network().conv(3).dense(6).dense(2)
    chain.constants["dense1.weight"][[1, 4]] = 0
    assert widths(chain.graph()) == [3, 4, 2]
    for values in chain.constants.values():
        values[:] = 0
    assert min(widths(chain.graph())) >= 1
