"""Operators and networks from .tflite files, planned, generated and run: the C equals the graph and
the interpreter of TensorFlow Lite. And operators as networks seldom have them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pipeline import passes
from pipeline.graph.graph import Graph
from pipeline.graph.operators.pairwise import Maximum, Order, SquaredDifference
from pipeline.graph.requant import FixedPoint, PowerOfTwo
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets.predictor import Predictor
from tests.codegen.int8.support import Native, agrees, apart
from tests.codegen.support import checked, frames, host
from tests.comparing import equal
from tests.graphs import Net
from tests.importers.test_tflite import MLPERF_TINY, mlperf_tiny
from tests.importers.tflite_cases import CASES as TFLITE
from tests.importers.tflite_networks import network
from tests.importers.tflite_reference import imported, reference
from tests.tiers import quick

Build = Callable[[], Net]


def net(shape: tuple[int, ...], *steps: Callable[[Net], object], dtype: str = "int8") -> Build:
    def build() -> Net:
        found = Net(shape, np.random.default_rng(len(shape) + len(steps)), dtype)
        for step in steps:
            step(found)
        return found

    return build


def conv(channels: int, kernel: tuple[int, int] = (3, 3), **options: object) -> Callable[..., str]:
    return lambda n: n.conv(channels, kernel, **options)


def depthwise(*args: object, **options: object) -> Callable[..., str]:
    return lambda n: n.depthwise(*args, **options)


NONE = (0, 0, 0, 0)

CASES: dict[str, Build] = {
    "conv dilated without padding": net((9, 9, 2), conv(3, dilation=(1, 2), padding=NONE)),
    "conv kernel wider than the image": net((2, 3, 4), conv(3, (4, 5))),
    "conv in groups": net((6, 5, 12), conv(8, groups=4)),
    "conv one multiplier": net((6, 5, 4), conv(4, per_channel=False)),
    "conv shifts left": net(
        (4, 4, 2), conv(3, (1, 1), requant=FixedPoint((1 << 30, 1 << 30, 1 << 29), (3, -4, 2)))
    ),
    "conv power of two": net((6, 6, 3), conv(4, requant=PowerOfTwo(2, 12))),
    "conv power of two, floored": net((6, 6, 3), conv(4, requant=PowerOfTwo(0, 9, "floor"))),
    "conv of bytes without sign": net((6, 6, 3), conv(4), dtype="uint8"),
    "depthwise of many channels": net((5, 5, 77), depthwise()),
    "depthwise of 48 channels": net((5, 5, 48), depthwise(stride=(2, 2))),
    "depthwise with a multiplier": net((6, 5, 3), depthwise((3, 3), 3)),
    "dense of a sequence": net((6, 9), lambda n: n.dense(4)),
    "dense to 16 bits": net(
        (20,), lambda n: n.dense(5, dtype="int16", requant=FixedPoint.of([0.02]))
    ),
    "dense to 32 bits": net((20,), lambda n: n.dense(5, dtype="int32", requant=PowerOfTwo(0, 0))),
    "slopes of elements": net((5, 4, 6), lambda n: n.slopes((5, 4, 6))),
    "one slope": net((12,), lambda n: n.slopes((1,))),
    "mean pool padded": net(
        (7, 6, 5), lambda n: n.mean((3, 3), stride=(2, 1), padding=(1, 1, 2, 1))
    ),
    "mean pool, clipped": net((7, 6, 5), lambda n: n.mean((3, 2), clip=(-10, 20))),
    "mean of bytes without sign": net((7, 6, 4), lambda n: n.mean((3, 2)), dtype="uint8"),
    "max pool, clipped": net((7, 6, 5), lambda n: n.maximum((3, 2), clip=(-10, 20))),
    "add to itself": net((5, 6, 4), lambda n: n.plus("image", "image")),
    "add a channel each": net(
        (5, 6, 4), lambda n: n.plus("image", n.constant("c", np.arange(-2, 2), "int8"))
    ),
    "add a constant first": net(
        (5, 6, 4),
        lambda n: n.plus(n.constant("c", np.arange(-60, 60).reshape(5, 6, 4), "int8"), "image"),
    ),
    "add a row": net((5, 6, 4), lambda n: n.plus("image", n.conv(4, (5, 1), padding=NONE))),
    "multiply a channel each": net(
        (5, 6, 4), lambda n: n.rescaled_mean(), lambda n: n.times("image", n.last)
    ),
    "multiply by a constant": net(
        (5, 6, 4), lambda n: n.times("image", n.constant("c", np.array([-9, 7, 1, 0]), "int8"))
    ),
    "greater": net(
        (5, 6, 4), lambda n: n.rescaled_mean(), lambda n: n.pairs(Maximum, "image", n.last)
    ),
    "order": net(
        (5, 6, 4),
        lambda n: n.rescaled_mean(),
        lambda n: n.pairs(
            Order, "image", n.last, operand_requants=(FixedPoint.of([0.5]), FixedPoint.of([0.3]))
        ),
    ),
    "squared difference": net(
        (5, 6, 4),
        lambda n: n.rescaled_mean(),
        lambda n: n.pairs(
            SquaredDifference,
            n.last,
            "image",
            requant=FixedPoint.of([2.0**-22]),
            operand_requants=(FixedPoint.of([0.5]), FixedPoint.of([0.3])),
        ),
    ),
    "concat of rows": net(
        (5, 6, 4), lambda n: n.concat(("image", n.maximum((1, 1), stride=(2, 1))), axis=0)
    ),
    "concat of columns": net(
        (5, 6, 4), lambda n: n.concat(("image", n.maximum((1, 1), stride=(1, 2))), axis=1)
    ),
    "pad nothing": net((5, 6, 4), lambda n: n.pad(((0, 0), (0, 0), (0, 0)))),
    "rearranged at once": net(
        (5, 7, 5),
        lambda n: n.rearrange((4, 6, 3), (2, 0, 1), (1, 0, 1), (1, 2, 3), (1, 2, 3)),
        dtype="uint8",
    ),
    "look-up of bytes without sign": net((4, 6, 4), lambda n: n.lookup(), dtype="uint8"),
    "softmax of many": net((1200,), lambda n: n.softmax()),
    "softmax of an image": net((2, 3, 5), lambda n: n.softmax(), dtype="uint8"),
}


@pytest.mark.parametrize("name", quick(list(CASES)[::4], CASES))
def test_c_equals_the_graph(name: str, tmp_path: Path) -> None:
    graph = CASES[name]().graph()
    assert agrees(Native(tmp_path, graph, apart(graph)), 8)


TODAY = [(kind, range(1)) for kind in TFLITE]
MANY = [(kind, range(100, 112)) for kind in (*TFLITE, "network")]


@pytest.mark.parametrize(
    ("kind", "seeds"), quick(len(TODAY), [*TODAY, ("network", range(3)), *MANY], ci=1)
)
def test_tflite(kind: str, seeds: range, tmp_path: Path) -> None:
    for seed in seeds:
        graph = imported(TFLITE.get(kind, network)(np.random.default_rng(seed)), tmp_path)
        plan = Ordinary().plan(graph, host())
        checked(tmp_path / f"{seed}", graph, plan, given=frames(graph, 5, seed))


def loaded(graph: Graph) -> Predictor:
    return Predictor.build(graph, Ordinary().plan(graph, host()), host(), threads=2)


@pytest.mark.parametrize("name", quick(1, MLPERF_TINY, ci=1))
def test_mlperf_tiny(name: str) -> None:
    _, graph = mlperf_tiny(name)
    given = frames(graph, 6)
    equal(loaded(graph).predict(given.astype(np.int8)), graph.evaluate(given))


@pytest.mark.slow
@pytest.mark.parametrize("name", MLPERF_TINY)
def test_mlperf_tiny_equals_tflite_micro_on_a_thousand_inputs(name: str) -> None:
    """Once as it is, once with all the lossless passes applied."""
    content, graph = mlperf_tiny(name)
    given = frames(graph, 1000, 2).astype(np.int8)
    expected = reference(content, given)
    for each in (graph, passes.applied(graph, passes.known())):
        outputs = loaded(each).predict(given)
        equal(outputs.reshape(len(given), -1), expected)
