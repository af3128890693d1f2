"""Random triples of network, strategy and board: each ends in running C, or in a refusal that says
what to use instead. ``python -m tests.campaign`` tries thousands.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import passes, verdict
from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan import pieces, proof
from pipeline.plan.calibrate import calibrated
from pipeline.plan.vocabulary import Plan
from pipeline.strategies import coded
from pipeline.strategies.auto import Auto
from pipeline.strategies.base import Strategy
from pipeline.strategies.in_place import Herringbone, Replace, SingleTranspose
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from pipeline.strategies.patch import Patch
from pipeline.strategies.swap import Swap
from tests.codegen import support
from tests.graphs import BLOCKS, Net, classifier
from tests.programs import ran
from tests.strategies.chains import SIZES, drawn
from tests.strategies.proving import as_c
from tests.targets.cortex_m import board_named

CHAINS = {"layout": ("slots", "slots", "contiguous"), "convolve_arriving": (False, False, True)}
OBJECTIVES = {"objective": ("memory", "latency")}
STRATEGIES: dict[type[Strategy], dict[str, tuple[Any, ...]]] = {
    Auto: OBJECTIVES,
    Herringbone: CHAINS,
    Joint: {**OBJECTIVES, "extra_macs": (0.0, 0.2)},
    Ordinary: {**OBJECTIVES, "preserve_input": (False, True)},
    Partial: {"search": ("exact", "pex"), "accumulator_bits": (32, 16), "channels": (0, 1)},
    Patch: {"rows": (1, 2, 4), "columns": (1, 2, 4)},
    Replace: CHAINS,
    SingleTranspose: CHAINS,
    Swap: {"scheduler": ("best", "best", "swapnn"), "buffer_bytes": (512, 4096)},
}
"""Each with some of its keys."""

FAMILIES = {
    "avr": ("arduino", "arduino_mega", "arduino_sd"),
    "m0+": ("nucleo_g0b1re",),
    "m4": ("nucleo_f446re", "nucleo_g431rb"),
    "m7": ("nucleo_f767zi", "stm32f746g_sd"),
    "m33": ("nucleo_u575zi",),
    "host": ("host",),
}
"""Boards by their cores."""

CARD = "stm32f746g_sd"
"""The board whose card others have for strategy swap, too, if any."""

*FIRST, LAST = STRATEGIES
KINDS = (*FIRST, Joint, LAST)
"""Joint has two turns: so numbers mean what they did when there was one strategy more."""
PAIRS = [(strategy, family) for strategy in KINDS for family in FAMILIES]
PASSES = ("constants", "fold_reshape", "fold_pad", "dead_channels")


@dataclass(frozen=True)
class Triple:
    graph: Graph
    strategy: Strategy
    hardware: Hardware
    family: str

    @classmethod
    def drawn(cls, number: int, seed: int = 0) -> Triple:
        """Pairs of strategy and family take turns."""
        kind, family = PAIRS[number % len(PAIRS)]
        rng = np.random.default_rng([seed, number])
        keys = {key: _one(rng, values) for key, values in STRATEGIES[kind].items()}
        few_bits = rng.random() < (0.4 if family == "avr" or "layout" in keys else 0.1)
        graph = drawn(rng).graph() if few_bits else network(rng)
        if rng.random() < 0.75:  # as networks arrive at schedule
            graph = passes.applied(graph, PASSES)
        boards = FAMILIES[family]
        swapping = [name for name in boards if name.endswith("_sd")] if kind is Swap else []
        streams = bool(rng.random() < (0.9 if keys.get("convolve_arriving") else 0.5))
        hardware = _board(_one(rng, swapping or boards), streams)
        if kind is Swap and not hardware.card.bytes and rng.random() < 0.6:
            card, most = replace(_board(CARD, False).card, line_bytes=1), hardware.sram_bytes
            hardware = replace(hardware, card=card, sram_bytes=min(most, 1 << 18))
        if rng.random() < 0.7:  # whatever fits
            hardware = replace(hardware, sram_bytes=max(hardware.sram_bytes, 1 << 15))
        elif rng.random() < 0.5:
            least = 600 + int(2 ** rng.uniform(4, 12)) + hardware.stack_reserve_bytes
            hardware = replace(hardware, sram_bytes=min(hardware.sram_bytes, least))
        return cls(graph, kind(**keys), hardware, family)


@cache
def _board(name: str, streams: bool) -> Hardware:
    return board_named(name, streams_input=streams, weights_in="flash")


def _one(rng: np.random.Generator, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


# --- networks


def network(rng: np.random.Generator) -> Graph:
    """Draw an 8-bit network of any operators, in branches, too."""
    shape = tuple(_one(rng, SIZES) for _ in range(3))
    net = Net(shape, rng, _one(rng, ("int8", "int8", "int8", "uint8")), "drawn")
    if rng.random() < 0.25:
        first = ((prod(shape),), (shape[1], shape[0], shape[2]), (1, *shape[:2]))
        if prod(shape) == prod(chosen := _one(rng, first)):
            net.reshape(chosen)
    for _ in range(int(rng.integers(1, 5))):
        if len(net.tensors[net.last].shape) == 3:
            _one(rng, (*BLOCKS, *MOVING))(net)
    while not net.operators or rng.random() < 0.15:
        _one(rng, (_sliced, _activated))(net)
    if rng.random() < 0.6:
        classifier(net)
    return net.graph()


def _activated(net: Net) -> None:
    """A table, slopes, or a sum with itself."""
    shape = net.tensors[net.last].shape
    match net.rng.integers(3):
        case 0:
            net.lookup()
        case 1:
            net.slopes(shape if net.rng.random() < 0.3 else shape[-1:])
        case _:
            net.plus(net.last, net.last)


def _sliced(net: Net) -> None:
    """Every so many from somewhere on, along each axis."""
    shape = net.tensors[net.last].shape
    if len(shape) != 3:
        return _activated(net)
    starts = tuple(int(net.rng.integers(min(n, 3))) for n in shape)
    steps = tuple(_one(net.rng, (1, 1, 2)) for _ in shape)
    counts = [-(-(n - low) // by) for n, low, by in zip(shape, starts, steps, strict=True)]
    net.rearrange(tuple(int(net.rng.integers(1, n + 1)) for n in counts), (0, 1, 2), starts, steps)


def _split(net: Net) -> None:
    """Uneven parts of the channels, each on a way of its own, and together again."""
    start, (height, width, depth) = net.last, net.tensors[net.last].shape
    if depth < 2:
        return _sliced(net)
    at, parts = int(net.rng.integers(1, depth)), []
    for low, high in ((0, at), (at, depth)):
        net.last = start
        net.rearrange((height, width, high - low), (0, 1, 2), (0, 0, low))
        parts.append(net.conv(int(net.rng.integers(1, 5))))
    net.concat((parts[0], net.like(parts[1], parts[0])), 2)


def _transposed(net: Net) -> None:
    shape = net.tensors[net.last].shape
    axes = tuple(int(n) for n in net.rng.permutation(3))
    made = [0, 0, 0]
    for axis, extent in zip(axes, shape, strict=True):
        made[axis] = extent
    net.rearrange((made[0], made[1], made[2]), axes)


def _resized(net: Net) -> None:
    height, width, depth = net.tensors[net.last].shape
    down, right = (int(n) for n in net.rng.integers(1, 4, 2))
    net.rearrange((height * down, width * right, depth), repeats=(down, right, 1))


def _reshaped(net: Net) -> None:
    height, width, depth = net.tensors[net.last].shape
    ways = ((width, height, depth), (1, height * width, depth), (height, 1, width * depth))
    net.reshape(_one(net.rng, ways))


def _over_channels(net: Net) -> None:
    """The mean of each pixel's channels, as importers have it."""
    height, width, depth = net.tensors[net.last].shape
    net.reshape((height * width, depth, 1))
    net.mean((1, depth), stride=(1, 1))
    net.reshape((height, width, 1))


def _joined(net: Net) -> None:
    """Side by side, along any axis."""
    start = net.last
    other = net.like(_one(net.rng, (net.lookup, net.depthwise))(), start)
    net.concat((start, other), int(net.rng.integers(3)))


def _flat(net: Net) -> None:
    """A dense layer amid the network."""
    net.dense(int(net.rng.integers(1, 9)))
    if net.rng.random() < 0.5:
        net.reshape((1, 1, net.tensors[net.last].size))


MOVING: tuple[Callable[[Net], None], ...] = (
    _activated, _sliced, _split, _transposed, _resized, _reshaped, _over_channels, _joined, _flat,
)  # fmt: skip


# --- what becomes of one


@dataclass(frozen=True)
class End:
    """``kind``: runs, refused, or what must not be; ``said``: of a refusal or a failure."""

    kind: str
    said: str = ""


GOOD = RUNS, REFUSED, TOO_LARGE = "runs", "refused", "does not fit"

REFUSALS = tuple(
    re.compile(each)
    for each in (
        r"^strategy=\w+ has no C on \w+ for .+: use (strategy=ordinary|quantize=int8, or another)",
        r"^strategy=auto: no strategy has code for .+; use another board or network$",
        r"strategy=swap takes .+: use strategy=auto$",
        r"strategy swap needs a card and .+; try hardware=stm32f746g_sd or strategy=auto$",
        r"strategy\.scheduler=swapnn .+; try strategy\.scheduler=best$",
        r"(try|use) (another|larger|smaller) .*buffer|is too small: use strategy\.scheduler=best$",
        r"strategy=patch reads the image again and again; .+: try strategy=auto$",
        r"strategy=patch: .+: try strategy=auto, or fewer strategy\.rows and \.columns$",
        r"^strategy\.convolve_arriving: .+: leave strategy\.convolve_arriving out$",
        r"set hardware\.streams_input=false, or leave preserve_input out$",
        r"^strategy \w+ cannot plan .+try strategy(=joint|\.layout=slots)$",
    )
)
"""All that stage ``schedule`` may refuse a network with; each says what to use instead."""


def scheduled(triple: Triple) -> tuple[Plan, bool]:
    """As stage ``schedule`` has it, and whether it fits."""
    graph, hardware = triple.graph, triple.hardware
    plan = triple.strategy.plan(graph, hardware)
    pieces.check(plan, hardware)
    coded.check(plan, graph, hardware)
    plan = calibrated(plan, graph, support.frames(graph, 3))
    found = verdict.check(plan, graph, hardware, proof.prove(plan, graph))
    return plan, found["status"] == "ok"


def tried(triple: Triple) -> End:
    try:
        plan, fits = scheduled(triple)
    except ThimbleError as error:
        listed = any(each.search(str(error)) for each in REFUSALS)
        return End(REFUSED if listed else "refused in other words", str(error))
    except Exception as error:
        return End("exception", f"{type(error).__name__}: {error}")
    try:
        files = generate(triple.graph, plan, triple.hardware, {})
    except Exception as error:
        return End("no C after schedule", f"{type(error).__name__}: {error}")
    if not fits:
        return End(TOO_LARGE)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if warned := _compiled(folder / "board", files, triple.hardware):
            return End("warning", warned)
        try:
            native = folder / "native"
            as_c(native, triple.graph, plan, triple.hardware, files=files, sanitize=False)
        except (AssertionError, subprocess.CalledProcessError) as error:
            return End("does not run as it should", str(getattr(error, "stderr", error))[:600])
    return End(RUNS)


def _compiled(folder: Path, files: dict[str, str], hardware: Hardware) -> str:
    """Compile it for the board; return what the compiler says."""
    if hardware.core == "host":
        return ""
    support.write(folder, files)
    tool = hardware.toolchain
    sources = sorted(name for name in files if name.endswith(".c"))
    flags = [flag for flag in tool.flags if not flag.startswith("-Wl")]
    flags.append(f"-DSTORAGE_LINE_BYTES={hardware.card.line_bytes}")
    command = [tool.compiler, *flags, "-c", *sources]
    return ran(command, folder).stderr[:1500]
