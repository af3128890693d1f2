"""The network as a shared library: exact outputs, its own memory for each copy, clear refusals."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.frames import stored
from pipeline.graph.graph import Graph
from pipeline.strategies.in_place import Herringbone
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets.predictor import Predictor
from tests.boards import load_hardware
from tests.codegen.card.support import planned
from tests.codegen.int8.support import frames, host, network
from tests.codegen.support import uno
from tests.comparing import equal
from tests.graphs import Chained, Net
from tests.programs import written
from tests.strategies.chains import mnist
from tests.strategies.swap.nets import board, random_chain


@pytest.fixture(scope="module")
def graph() -> Graph:
    return network()


@pytest.fixture(scope="module")
def predictor(graph: Graph) -> Predictor:
    return Predictor.build(graph, Ordinary().plan(graph, host()), host(), threads=2)


def images(graph: Graph, count: int, seed: int = 0) -> np.ndarray:
    return frames(graph, count, seed).astype(str(graph.tensors[graph.input].dtype))


@pytest.mark.parametrize("count", [0, 1, 2, 15, 33, 1000])
def test_any_number_of_images(predictor: Predictor, graph: Graph, count: int) -> None:
    given = images(graph, 1000)[:count]
    outputs = predictor.predict(given)
    assert outputs.dtype == np.int8 and outputs.shape == (count, 3)
    if count:
        equal(outputs, graph.evaluate(given.astype(np.int64)))
        equal(predictor.predict(given[::-3]), outputs[::-3])  # a view


def test_kernels_in_assembly_have_a_twin_that_compilers_make_right_vectors_of() -> None:
    net, chip = Net((5, 1, 40), np.random.default_rng(0)), load_hardware("nucleo_g0b1re")
    graph = Chained(net).conv(32, (5, 1), padding=(0, 0, 0, 0)).conv(48, (1, 1)).graph()
    predictor = Predictor.build(graph, Ordinary().plan(graph, chip), chip)
    equal(predictor.predict(images(graph, 6)), graph.evaluate(frames(graph, 6)))


def test_threads_and_predictors_side_by_side(predictor: Predictor, graph: Graph) -> None:
    another = Chained(Net((8, 8, 3), np.random.default_rng(5))).conv(4).graph()
    second = Predictor.build(another, Ordinary().plan(another, host()), host())
    given = images(graph, 400)
    expected = predictor.predict(given), second.predict(given)
    with ThreadPoolExecutor(4) as pool:
        jobs = [(p, n) for n in range(6) for p in (0, 1)]
        found = list(pool.map(lambda job: (predictor, second)[job[0]].predict(given), jobs))
    for (which, _), outputs in zip(jobs, found, strict=True):
        equal(outputs, expected[which])


def test_what_is_no_input_is_one_line(predictor: Predictor, graph: Graph) -> None:
    given = images(graph, 2)
    for wrong in (given[:, :4], given.astype(np.uint8), given.astype(np.float32), given[0]):
        with pytest.raises(ThimbleError, match=r"arrays \(n, 8, 8, 3\) of int8, not"):
            predictor.predict(wrong)


@pytest.mark.ci
def test_a_runs_folder(tmp_path: Path, graph: Graph, predictor: Predictor) -> None:
    with pytest.raises(ThimbleError, match="has no generated C: run it with until=generate"):
        Predictor.of(tmp_path)
    graph.save(tmp_path)
    sources = generate(graph, Ordinary().plan(graph, host()), host(), {})
    written(tmp_path / "generated", {**sources, "main.c": "#error not of the network"})
    given = images(graph, 50)
    equal(Predictor.of(tmp_path).predict(given), predictor.predict(given))
    first = graph.operators[0]
    replace(graph, outputs=(first.output,), operators=(first,)).save(tmp_path)
    with pytest.raises(ThimbleError, match="the generated C is not of the network small"):
        Predictor.of(tmp_path)


def test_a_network_that_swaps_is_one_line() -> None:
    net = random_chain(9)
    with pytest.raises(ThimbleError, match="swaps with a card, which a library does not have"):
        Predictor.build(net, planned(net, 1 << 12), board(1 << 14))


@pytest.mark.ci
def test_a_boards_nibbles(tmp_path: Path) -> None:
    """The AVR's own code, compiled natively: 4 bits, 16-bit outputs."""
    chain = mnist().graph()
    predictor = Predictor.build(chain, Herringbone("slots").plan(chain, uno("flash")), uno("flash"))
    given = images(chain, 40)
    outputs = predictor.predict(given)
    assert outputs.dtype == np.int16
    equal(outputs, chain.evaluate(given.astype(np.int64)))


def test_images_become_frames(graph: Graph, predictor: Predictor) -> None:
    pictures = np.random.default_rng(0).integers(0, 256, (20, 8, 8, 3)).astype(np.uint8)
    given = stored(pictures, predictor.input)
    assert given.dtype == np.int8
    equal(given.astype(int), pictures.astype(int) - 128)
    assert predictor.predict(given).shape == (20, 3)
    unsigned = replace(predictor.input, dtype=mnist().graph().tensors["image"].dtype)
    equal(stored(pictures, unsigned), pictures)
    with pytest.raises(ThimbleError, match="images of 4x8x3 are not what the network takes"):
        stored(pictures[:, :4], predictor.input)
