"""Generated C, compiled natively with sanitizers, equals the integer graph bit for bit: networks of
few bits, and of bytes besides, for every core, whose input is there or streams in."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.codegen.bound import bound
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.requant import PowerOfTwo
from pipeline.graph.tensor import DType, Tensor
from pipeline.hardware import Hardware, Memory
from pipeline.plan import vocabulary as v
from pipeline.plan.verify import verify
from pipeline.strategies.base import Strategy
from pipeline.strategies.in_place import Herringbone, Replace
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from tests.codegen import networks
from tests.codegen.int8.support import Hand, at, net
from tests.codegen.support import Native, agrees, frames, host, on_board, uno
from tests.comparing import equal
from tests.strategies.chains import STRATEGIES, Chain, board, mnist
from tests.targets.cortex_m import board_named, needs_arm
from tests.tiers import quick


def test_any_chunking_of_the_input(tmp_path: Path) -> None:
    graph = mnist().graph()
    native = Native(tmp_path, graph, Herringbone("slots").plan(graph, uno()), uno())
    assert all(agrees(native, 3, chunk) for chunk in (1, 13, 28, 500, 784))


CHAINS: dict[str, networks.Make] = {
    "lopsided padding": lambda: Chain((7, 6, 3)).conv("a", 4, padding=(0, 2, 1, 0)).dense("d", 3),
    "by columns": lambda: Chain((4, 9, 3)).conv("a", 3, padding=(1, 1, 1, 1)).dense("d", 3),
    "bytes by columns": lambda: Chain((3, 9, 2), "int8").conv(
        "a", 2, dtype="int8", padding=(1, 1, 2, 0)
    ),
    "pointwise": lambda: Chain((5, 5, 4)).conv("a", 9, 1).conv("b", 3, 1).dense("d", 2),
    "flat kernel": lambda: Chain((6, 9, 2)).conv("a", 6, (1, 5)).maximum("p").dense("d", 3),
    "many channels": lambda: Chain((6, 6, 3)).conv("a", 17).conv("b", 23).dense("d", 5),
    "one channel": lambda: Chain((6, 6, 1)).conv("a", 1).conv("b", 1).dense("d", 1),
    "pooled twice": lambda: Chain((16, 12, 3), "uint8").average("p").average("q", 2).dense("d", 3),
    "colour pooled": lambda: Chain((8, 12, 3), "uint8").average("p").conv("a", 7).dense("d", 3),
    "pooled by 3": lambda: (
        Chain((9, 6, 1), "uint8").average("p", 7, kernel=(3, 2), stride=(3, 2)).dense("last", 3)
    ),
    "signed bytes": lambda: Chain((6, 6, 2), "int8").conv("a", 4, dtype="int8").dense("d", 5),
    "signed nibbles": lambda: Chain((6, 6, 2), "int4").conv("a", 4, dtype="int4").dense("d", 5),
    "nibbles to bytes": lambda: Chain((6, 6, 2)).conv("a", 3, dtype="uint8").maximum("p"),
    "wide outputs": lambda: Chain((4, 4, 3)).dense("d", 6, "int32"),
    "dense to dense": lambda: Chain((4, 4, 3)).dense("a", 9, "uint4").dense("d", 6),
    "maximum first": lambda: Chain((8, 8, 2), "int8").maximum("p").dense("d", 3),
    "separable": networks.separable,
    "channels multiplied": lambda: (
        Chain((7, 6, 3)).conv("a", 15, (3, 2), groups=3, padding=(1, 0, 1, 1)).dense("d", 3)
    ),
    "padded unit": networks.padded_unit,
    **{name: networks.SHAPES[name] for name in ("strides", "dilation")},
    **networks.PORTABLE,
}  # fmt: skip


@pytest.mark.parametrize("layout", quick(1, ["slots", "contiguous"], ci=0))
@pytest.mark.parametrize(
    "name", quick([*list(CHAINS)[::8], "separable", "channels multiplied", "padded unit"], CHAINS)
)
def test_chains(name: str, layout: str, tmp_path: Path) -> None:
    graph = networks.made(CHAINS[name])
    if (name, layout) == ("padded unit", "contiguous"):  # its sum has two inputs
        with pytest.raises(ThimbleError, match="for chains of convolutions"):
            Herringbone(layout).plan(graph, uno())
        return
    plan = Herringbone(layout).plan(graph, uno())
    assert agrees(Native(tmp_path, graph, plan, uno(), sanitize=layout == "slots"))


def core(name: str, streams: bool = False) -> Hardware:
    return replace(board(streams, "flash"), core=name, cpu="cortex-m4")


def wider(dtype: str) -> Graph:
    """With int8 weights and int32 biases out of int8's range."""
    graph = Chain((6, 6, 3), dtype).conv("a", 5, dtype=dtype).dense("d", 4, "int32").graph()
    rng = np.random.default_rng(3)
    tensors, constants = dict(graph.tensors), dict(graph.constants)
    for name, values in constants.items():
        bits, limit = (8, 128) if name.endswith("weight") else (32, 5000)
        tensors[name] = replace(tensors[name], dtype=DType(bits, True))
        constants[name] = rng.integers(-limit, limit, values.shape)
    return replace(graph, tensors=tensors, constants=constants)


def alike(value: int) -> Graph:
    """Saturated sums: every accumulator at an end of its range."""
    graph, bias = mnist().graph(), 127 if value > 0 else -128
    constants = {
        name: np.full_like(old, value if name.endswith("weight") else bias)
        for name, old in graph.constants.items()
    }
    return replace(graph, constants=constants)


def kept() -> Chain:
    return Chain((6, 6, 2)).conv("a", 4).dense("d", 3)


SLOTS, WHOLE = Herringbone("slots"), Ordinary("slots")
OTHERS: dict[str, tuple[networks.Make, Strategy, Hardware, str]] = {
    "bytes for an AVR, by parts": (
        lambda: networks.bytes_only(8, 7, 3), Partial(), core("avr", True), "NN_INPUT_FILLABLE 0"
    ),
    "both": (networks.mixed, SLOTS, core("avr", True), "nn_int8.h"),
    "byte weights": (lambda: wider("int8"), SLOTS, uno("stream"), ""),
    "weights in flash": (mnist, Herringbone("contiguous"), uno("flash"), ""),
    "an image that is kept": (kept, WHOLE, uno(), ""),
    "an image that is given": (kept, WHOLE, uno(streams=False), ""),
    "weights of -8": (lambda: alike(-8), SLOTS, uno(), ""),
    "bytes pooled on the way, scaled": (
        lambda: networks.pooled("scaled"), WHOLE, core("avr", True), "nn_fed_rows"
    ),
    "windows over rows": (
        networks.windows, networks.EvenRowsFirst(), uno("flash", False), "nn_find(in, 3, 3, 2,"
    ),
    "a residual unit": (networks.residual, WHOLE, host(), ""),
    "one over all pixels": (networks.residual, Joint(), host(), ""),
    "a cropped one": (networks.cropped, SLOTS, host(), ""),
    # those of CI
    "both, whole": (networks.mixed, WHOLE, core("cortex_m"), "nn_cells.h"),
    # an operator called so would have a function called as another's weights are
    "weights_a": (lambda: networks.mixed("weights_a"), WHOLE, core("host"), ""),
    "bias a": (lambda: networks.mixed("bias a"), WHOLE, core("host"), ""),
    "bytes for a Cortex-M": (
        lambda: networks.bytes_only(8, 7, 3), Ordinary(), core("cortex_m", True),
        "NN_INPUT_FILLABLE 0",
    ),
    "bytes pooled on the way, maximum": (
        lambda: networks.pooled("maximum"), WHOLE, core("host", True), "nn_fed_rows"
    ),
    "bytes pooled on the way, mean": (
        lambda: networks.pooled("mean"), WHOLE, core("avr", True), "nn_fed_rows"
    ),
    "byte weights, bits": (lambda: wider("uint4"), SLOTS, uno("sram"), ""),
    "weights of 7": (lambda: alike(7), SLOTS, uno(), ""),
    # one more is refused, see test_refusals
    "65,535 rows": (
        lambda: (
            Chain((65_535, 2, 1), "uint8")
            .average("p", 5, kernel=(15, 2), stride=(15, 2)).dense("d", 2)
        ),
        Herringbone("contiguous"), uno(), "",
    ),
    **{
        f"a cropped one by {each.name}": (networks.cropped, each, host(), "")
        for each in (WHOLE, Joint(), Replace())
    },
}  # fmt: skip
"""With a word of the C."""


@pytest.mark.parametrize("name", quick(8, OTHERS))
def test_networks(name: str, tmp_path: Path) -> None:
    make, strategy, hardware, says = OTHERS[name]
    graph = networks.made(make)
    native = Native(tmp_path, graph, strategy.plan(graph, hardware), hardware)
    assert says in native.files["model.c"] + native.files["model.h"]
    assert agrees(native, 3, 7 if hardware.streams_input and name != "65,535 rows" else None)


@pytest.mark.parametrize(
    ("strategy", "name", "streams"),
    quick(2, zip(STRATEGIES, ("host", "cortex_m") * 2, (True, False, False, True), strict=True)),
    ids=lambda value: getattr(value, "name", value),
)
def test_nibbles_without_assembly(strategy: type, name: str, streams: bool, tmp_path: Path) -> None:
    graph, hardware = mnist().graph(), core(name, streams)
    plan = strategy("slots").plan(graph, hardware)
    source = generate(graph, plan, hardware, {})["model.c"]
    assert "__AVR__" not in source and "nn_canary" not in source
    assert agrees(Native(tmp_path, graph, plan, hardware), 4)


def identity(requant: PowerOfTwo, bias: int, dtype: str) -> Graph:
    """A 1x1 convolution with weight 1: shows what requantization makes of 0 … 15 + bias."""
    tensors = {
        "x": Tensor("x", (4, 4, 1), DType(4, False)),
        "w": Tensor("w", (1, 1, 1, 1), DType(4, True)),
        "b": Tensor("b", (1,), DType(8, True)),
        "y": Tensor("y", (4, 4, 1), DType.parse(dtype)),
    }
    op = Conv2d("c", ("x",), "y", ("w", "b"), requant=requant)
    constants = {"w": np.ones((1, 1, 1, 1), np.int64), "b": np.array([bias])}
    return Graph("identity", tensors, (op,), constants, ("x",), ("y",))


@pytest.mark.parametrize("dtype", quick(["int8"], ["uint8", "int8", "int16"]))
@pytest.mark.parametrize(
    ("requant", "bias"),
    [
        (PowerOfTwo(0, 1), 0),
        (PowerOfTwo(1, 2), -17),
        (PowerOfTwo(2, 3), 4),
        (PowerOfTwo(5, 0), -100),
        (PowerOfTwo(0, 2, "floor"), -9),
    ],
)
def test_ties_round_to_even(requant: PowerOfTwo, bias: int, dtype: str, tmp_path: Path) -> None:
    graph = identity(requant, bias, dtype)
    plan = Ordinary("slots").plan(graph, uno())
    every = np.arange(16).reshape(1, 4, 4, 1)
    native = Native(tmp_path, graph, plan, uno(), sanitize=False)
    equal(native(every), graph.evaluate(every))


def test_zero_points_and_a_signed_relu(tmp_path: Path) -> None:
    graph = identity(PowerOfTwo(1, 1), -9, "int8")
    zeros = {"x": 5, "y": -3}
    tensors = {
        name: replace(each, zero_point=zeros.get(name, 0)) for name, each in graph.tensors.items()
    }
    op = replace(graph.operators[0], clip=(-3, 127))  # type: ignore[call-arg]
    graph = replace(graph, tensors=tensors, operators=(op,))
    native = Native(tmp_path, graph, Ordinary("slots").plan(graph, uno()), uno())
    assert agrees(native)
    assert len(np.unique(graph.evaluate(frames(graph)))) > 3


@needs_arm
@pytest.mark.parametrize("name", quick(1, ["nucleo_f446re", "nucleo_g0b1re"]))
def test_nibbles_on_a_simulated_board(name: str, tmp_path: Path) -> None:
    hardware = board_named(name, streams_input=True)
    graph = Chain((12, 12, 1), "uint8").average("p").conv("c", 3).maximum("m").dense("d", 2).graph()
    on_board(tmp_path, graph, hardware, STRATEGIES[-1]("slots").plan(graph, hardware))


def rows_as_they_come(ring: int, strides: tuple[int, ...] = ()) -> tuple[Graph, v.Plan]:
    """A 3x3 convolution over a ring of rows of the image: three before the first row of outputs,
    then one each; the last output row has no row below it."""
    n = net(8, 6, 3)
    name = n.conv(4)
    hand = Hand(n.graph())
    x = hand.put("image", 0, wrap=(ring, 0, 0), strides=strides)
    y = hand.put(name, 400)
    arriving = v.Buffer("arriving", "image", "stream", (8, 6, 3), 8, v.packed((8, 6, 3), 8))
    hand.buffers["arriving"] = arriving

    def row(lo: int | v.Lin, count: int = 1) -> v.Move:
        place = (lo, 0, 0), (count, 6, 3)
        return v.Move(v.Slice("arriving", *place), v.Slice(x.buffer, *place))

    def compute(lo: int | v.Lin) -> v.Compute:
        seen = v.Slice(
            x.buffer, (lo + -1 if isinstance(lo, int) else v.Lin(-1, lo.coef), 0, 0), (3, 6, 3)
        )
        return v.Compute(
            name, v.Slice(y.buffer, (lo, 0, 0), (1, 6, 4)), (seen, *hand.parameters(name))
        )

    steps: tuple[v.Step, ...] = (
        row(0),
        v.Loop("r", 7, (row(at("r", 1, 1)), compute(at("r", 1)))),
        compute(7),
    )
    memories = (Memory("sram", 1 << 12), Memory("flash", 1 << 12, "rom"))
    plan = v.Plan(
        hand.graph.name, "by hand", (*memories, Memory("stream", 144, "stream")),
        tuple(hand.buffers.values()), (v.Track("cpu", steps),), ("arriving", *hand.fixed), (name,),
    )  # fmt: skip
    return hand.graph, plan


@pytest.mark.parametrize(("ring", "strides"), [(4, ()), (4, (40, 6, 2)), (3, ())])
def test_rows_in_a_ring_while_they_arrive(
    ring: int, strides: tuple[int, ...], tmp_path: Path
) -> None:
    graph, plan = rows_as_they_come(ring, strides)
    verify(plan, graph)
    native = Native(tmp_path, graph, plan, core("avr", True))
    assert all(agrees(native, 4, chunk) for chunk in (1, 7, 18, 100))


def test_steps_of_one_round() -> None:
    """Variables of loops further in stay variables."""
    piece = v.Slice("a", (v.Lin(1, (("i", 2), ("j", 3))), 0), (1, 4))
    move = v.Move(piece, replace(piece, copy=v.Lin(0, (("i", 1),))))
    inner = bound(v.Loop("j", 5, (move, v.Wait("c", v.Lin(4, (("i", 10),))))), {"i": 7})
    assert isinstance(inner, v.Loop)
    moved, wait = inner.body
    assert isinstance(moved, v.Move) and moved.src.lo == (v.Lin(15, (("j", 3),)), 0)
    assert moved.dst.copy == 7 and wait == v.Wait("c", 74)
    last = bound(moved, {"j": 2})
    assert isinstance(last, v.Move) and last.src.lo == (21, 0)
