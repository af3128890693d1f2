"""``modelled_us`` of a plan is near ``compute_us`` of its run: within 5 % on Cortex-M, and within
10 % on an AVR, with as many activations of 0 as the images have that are run."""

from dataclasses import asdict, replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import yaml

from pipeline import config, passes
from pipeline.datasets.noise import pictures
from pipeline.frames import stored
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.hardware import Hardware
from pipeline.home import ROOT
from pipeline.kernels import modelled, skips, zero_shares
from pipeline.measure import timing
from pipeline.quantize.int4 import Int4
from pipeline.strategies.base import Strategy
from pipeline.strategies.in_place import Herringbone
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets import device, machines
from pipeline.targets.planned import planned
from pipeline.training.environment import Run
from pipeline.training.released import Released
from tests.strategies.chains import Chain, mnist
from tests.targets.conftest import load_hardware, needs_avr
from tests.targets.cortex_m import board_named, built, needs_arm
from tests.targets.test_qemu_mlperf import graph_of
from tests.tiers import quick

ALL = {"sram_bytes": machines.DESK_OFFSET, "flash_bytes": machines.DESK_OFFSET}
"""Memory of the simulated machines."""


@cache
def network(name: str) -> Graph:
    """Make one of 8 bits with random weights, or of 4 as released; ``mnist``: random ones of 4."""
    if name == "mnist":
        return mnist().graph()
    if name.startswith("dense"):
        channels, outputs = map(int, name.split()[1:])
        net = Chain((8, 8, 2), "uint8").average("pooled", shift=6)
        return net.conv("a", channels, 1).dense("d", outputs).graph()
    if not name.startswith(("mnist", "record")):
        return graph_of(name)
    model = config.instantiate(yaml.safe_load((ROOT / f"conf/model/{name}.yaml").read_text()))
    released = Released(f"{name}-{'cifar10' if 'cifar' in name else 'mnist'}")
    graph = Int4().graph(name, model, released.train(model, {}, Run()).weights)
    return passes.applied(graph, ["constants", "fold_reshape", "fold_pad"])


def images(graph: Graph) -> IntArray:
    tensor = graph.tensors[graph.input]
    shape = (1,) * (3 - len(tensor.shape)) + tensor.shape
    found = stored(pictures(2, (shape[0], shape[1], shape[2]), 0), replace(tensor, raw=None))
    return found.reshape(-1, *tensor.shape).astype(np.int64)


def error(name: str, hardware: Hardware, strategy: Strategy, folder: Path) -> float:
    """Return the model's error, relative to a simulated run."""
    graph = network(name)
    given, plan = images(graph), strategy.plan(graph, hardware)
    said = modelled(plan, graph, hardware, zero_shares(graph, given))
    assert said["modelled_by"] == "kernels"
    size, about = built(folder, graph, hardware, plan), planned(plan, graph, hardware)
    assert abs(about["planned_flash_bytes"] - size.flash_bytes) < 0.1 * size.flash_bytes
    assert abs(about["planned_sram_bytes"] - size.sram_bytes) < 0.1 * size.sram_bytes
    sent = np.ascontiguousarray(given.astype(np.int8)).view(np.uint8)
    target = {"name": "simulate", "images": 1}
    report, _ = device.measure(target, folder / "build", asdict(size), hardware, sent)
    return float(said["modelled_us"] / timing(report, hardware)["compute_us"] - 1)


CORTEX_M = [
    ("lenet5", "nucleo_f446re", Ordinary()),
    ("ds_cnn_s", "nucleo_g0b1re", Joint()),
    *product(("mnist_2kb", "record_mnist"), ("pico", "nucleo_f302r8"), (Ordinary(),)),
    *product(
        ("ds_cnn_s", "autoencoder", "resnet8", "micronet_kws_s", "mobilenet_v1_vww"),
        ("nucleo_g431rb", "nucleo_u575zi", "nucleo_f767zi", "nucleo_g0b1re", "nucleo_f302r8",
         "nucleo_f446re", "nucleo_l4r5zi"),
        (Ordinary(), Joint()),
    ),
]  # fmt: skip


@needs_arm
@pytest.mark.parametrize(("name", "board", "strategy"), quick(0, dict.fromkeys(CORTEX_M), ci=2))
def test_on_a_cortex_m(name: str, board: str, strategy: Strategy, tmp_path: Path) -> None:
    """Rows are streamed. C of 4 bits within 10 %."""
    hardware = board_named(board, **ALL, streams_input=isinstance(strategy, Joint))
    assert abs(error(name, hardware, strategy, tmp_path)) < (0.1 if "mnist" in name else 0.05)


UNO, MEGA = {"name": "arduino"}, {"name": "arduino_mega"}
AVR = [
    ("mnist", UNO, Herringbone()),
    ("mnist_2kb", UNO | {"weights_in": "flash"}, Herringbone("contiguous")),
    ("record_mnist_flash", UNO | {"weights_in": "flash", "wait_bytes": 28}, Joint()),
    ("lenet5", MEGA, Ordinary()),
    ("mnist_2kb", UNO, Herringbone(convolve_arriving=True)),
    ("mnist_2kb", UNO | {"weights_in": "flash"}, Ordinary()),
    ("record_mnist", UNO, Herringbone()),
    ("record_mnist", UNO | {"weights_in": "flash"}, Herringbone(convolve_arriving=True)),
    ("record_cifar10_2kb", UNO, Herringbone()),
    ("record_cifar10_flash", UNO | {"weights_in": "flash", "wait_bytes": 96}, Joint()),
    ("time_channel", UNO | {"weights_in": "flash", "wait_bytes": 20}, Joint()),
    ("ds_cnn_s", MEGA, Joint()),
    ("dense 32 40", MEGA | {"weights_in": "flash"}, Ordinary()),
    ("dense 64 16", MEGA | {"weights_in": "flash"}, Ordinary()),
]


@needs_avr
@pytest.mark.parametrize(("name", "board", "strategy"), quick(AVR[:1], AVR, ci=1))
def test_on_an_avr(name: str, board: dict[str, object], strategy: Strategy, tmp_path: Path) -> None:
    """Large dense layers, in assembly and in C, within 5 %."""
    most = 0.05 if name.startswith("dense") else 0.1
    assert abs(error(name, load_hardware(**board), strategy, tmp_path)) < most  # type: ignore[arg-type]


def test_zeros_save_what_they_skip() -> None:
    graph, board = network("mnist"), load_hardware()
    plan = Herringbone().plan(graph, board)
    none, half = (
        modelled(plan, graph, board, dict.fromkeys(graph.tensors, share))["modelled_us"]
        for share in (0.0, 0.5)
    )
    assert skips(plan, graph, board) and half < none
    assert modelled(plan, graph, board)["modelled_us"] == none


def test_without_kernels_that_declare_the_core_macs_are_counted() -> None:
    graph, board = network("mnist"), board_named("host")
    plan = Ordinary().plan(graph, board)
    us = graph.macs * board.cycles_per_mac / board.clock_hz * 1e6
    found = modelled(plan, graph, board)
    assert found["modelled_by"] == "cycles_per_mac"
    assert found["modelled_us"] == pytest.approx(us, abs=0.1)
