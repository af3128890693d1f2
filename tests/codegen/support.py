"""Generated C, compiled natively and run on frames; graphs and boards to generate for."""

import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import ihex
from pipeline.codegen import generate
from pipeline.codegen.card import image
from pipeline.errors import ThimbleError
from pipeline.frames import answers, fed
from pipeline.frontends.frontend import Frontend
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.hardware import Hardware
from pipeline.home import ROOT
from pipeline.plan.fit import roomy
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Plan
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets import builds, qemu, simavr, stepped
from pipeline.targets.runs import Runs
from pipeline.targets.toolchain import Size
from tests import programs
from tests.comparing import equal, said
from tests.importers.tflite_reference import frames
from tests.strategies.chains import board
from tests.targets.cortex_m import generated, outputs
from tests.tiers import quick

SANITIZERS = ("-g1", "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
DEVICE = ROOT / "firmware" / "storage" / "file_device.c"
"""The card of a plan that swaps."""

WARNINGS = ("-std=gnu99", "-Wall", "-Wextra", "-Werror")

MAIN = Path(__file__).with_name("main.c").read_text()
"""Program around a network, which says by its status what is wrong."""


def host(sram_bytes: int = 1 << 24) -> Hardware:
    """A core with portable C, and room for any test's network."""
    return replace(board(False, "flash", sram_bytes), flash_bytes=1 << 26)


def uno(weights_in: str = "sram", streams: bool = True) -> Hardware:
    """An Arduino Uno with room for any test's activations."""
    return replace(board(streams, weights_in), core="avr", part="atmega328p")


def write(folder: Path, files: Mapping[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(content)
    return folder


def compiled(folder: Path, flags: Sequence[str], sources: Sequence[str]) -> None:
    """Compile ``sources`` to ``program``: model.c and main.c as one, in half the time."""
    both = '#include "model.c"\n#include "main.c"\n'
    rest = [name for name in sources if name not in ("model.c", "main.c")]
    texts = [path.read_text() for path in folder.glob("*.[ch]")]
    if "-O0" in flags and any("#pragma GCC unroll" in text for text in texts):
        flags = (*flags, "-Wno-error")  # gcc says that it does not unroll
    linker = ["-fuse-ld=gold"] if shutil.which("ld.gold") else []  # in a third of the time
    command = ["cc", *WARNINGS, *flags, *rest, *linker, "-o", "program", "-x", "c", "-I.", "-"]
    programs.said(command, folder, input=both)


class Native:
    """``graph`` as generated for ``plan``, compiled natively; a crash is an error."""

    def __init__(
        self,
        folder: Path,
        graph: Graph,
        plan: Plan,
        hardware: Hardware | None = None,
        *,
        sanitize: bool = True,
        files: Mapping[str, str] | None = None,
        device: Path | None = None,
        options: tuple[str, ...] = (),
    ) -> None:
        """``files``: what was generated, if not for ``hardware``, or a host with room; ``device``:
        the card, if not ``DEVICE``; ``options``: the compiler's."""
        name = hardware.name if hardware else "host"
        self.graph, self.about = graph, said(graph, plan, folder, name)
        hardware = hardware or host()
        self.about["begins"] = lambda frame: begins(graph, plan, hardware, self.upto(frame))
        self.files = files or generate(graph, plan, hardware, {})
        written = {**self.files, "main.c": MAIN}
        self.card = folder / image.NAME
        if plan.on_card:
            written[(device or DEVICE).name] = (device or DEVICE).read_text()
        write(folder, written)
        if plan.on_card:
            image.Image(graph, plan).write(self.card)
        sent = folder / "parameters.hex"
        self.parameters = ihex.flash_image(sent) if sent.exists() else b""
        self.program = folder / "program"
        flags = SANITIZERS if sanitize else ("-O1",)
        compiled(folder, (*flags, *options), [name for name in written if name.endswith(".c")])

    def __call__(self, frames: IntArray, chunk: int | None = None) -> IntArray:
        """(n, *input shape) -> (n, *output shape)."""
        status, found = self.run(frames, chunk)
        assert status == 0, status
        return found

    def run(self, frames: IntArray, chunk: int | None = None) -> tuple[int, IntArray]:
        """The status that the program ends with, see MAIN, and the outputs until then."""
        self.given, graph = frames, self.graph
        command = [str(self.program), *([str(chunk)] if chunk else [])]
        folder, sent = self.program.parent, self.sent(frames)
        done = subprocess.run(command, cwd=folder, input=sent, capture_output=True, check=False)
        assert not done.stderr, (done.returncode, done.stderr.decode()[-2000:])
        targets = [graph.tensors[name] for name in graph.outputs]
        if len(targets) == 1:
            values = np.frombuffer(done.stdout, targets[0].dtype.stored)
            return done.returncode, values.astype(np.int64).reshape(-1, *targets[0].shape)
        each = sum(of.size * of.dtype.bits // 8 for of in targets)
        replies = np.frombuffer(done.stdout, np.int8).reshape(-1, each)
        return done.returncode, answers(graph, replies)

    def upto(self, frame: int) -> IntArray:
        """Return it, with states behind those before it."""
        return self.given[0 if self.graph.states else frame : frame + 1]

    def sent(self, frames: IntArray) -> bytes:
        """Return what the program reads."""
        return self.parameters + fed(self.graph, frames).tobytes()


def begins(graph: Graph, plan: Plan, hardware: Hardware, frames: IntArray) -> str:
    """Say where the plan's C begins to differ from the interpreter, natively, on ``frames``."""
    try:
        stepped.check(graph, plan, hardware, frames, "host")
    except ThimbleError as error:
        return str(error)
    return "each step writes what the interpreter does"


def by_tier(kinds: Collection[Any], *seeds: range) -> list[Any]:
    """Pair kinds and seeds: the first are ``make test``'s, the second CI's, others nightly."""
    return quick(len(kinds), [(kind, each) for each in seeds for kind in kinds], ci=len(kinds))


def agrees(native: Native, count: int = 6, chunk: int | None = None) -> bool:
    given = frames(native.graph, count)
    about = native.about | ({"chunk": chunk} if chunk else {})
    equal(native(given, chunk), native.graph.evaluate(given), **about)
    return True


def checked(
    folder: Path,
    graph: Graph,
    plan: Plan,
    hardware: Hardware | None = None,
    given: IntArray | None = None,
    *,
    expected: IntArray | None = None,
    interpreted: bool = False,
    **options: Any,
) -> Native:
    """Prove ``plan``, and have its C, natively, give the graph's outputs of some frames, or what is
    ``expected``; ``interpreted``: and the interpreter, of the last frame."""
    verify(roomy(plan), graph)
    given = frames(graph, 4) if given is None else given
    expected = graph.evaluate(given) if expected is None else expected
    if interpreted:
        equal(interpret(plan, graph, given[-1]).output, expected[-1], strategy=plan.strategy)
    native = Native(folder, graph, plan, hardware, **options)
    equal(native(given), expected, **native.about)
    return native


def on_board(
    folder: Path,
    graph: Graph,
    hardware: Hardware,
    plan: Plan | None = None,
    given: IntArray | None = None,
    *,
    expected: IntArray | None = None,
    frontend: Frontend | None = None,
    extra: Mapping[str, str] | None = None,
    fits: bool = True,
) -> tuple[Size, Runs]:
    """Build a network for a board and simulate it: it fits, its outputs are the graph's, or what is
    ``expected``, and its stack is within its bound; ``extra``: more files."""
    plan = plan or Ordinary().plan(graph, hardware)
    sources = write(generated(folder, graph, hardware, plan, frontend), extra or {})
    size = builds.build(sources, folder / "build", hardware)
    assert size.status == "ok" or not fits, size.where
    given = frames(graph, 3) if given is None else given
    expected = graph.evaluate(given) if expected is None else expected
    sent = given.astype(np.dtype("<i2")) if frontend else fed(graph, given)
    run = simavr.run if hardware.core == "avr" else qemu.run
    runs = run(folder / "build", vars(size), hardware, np.ascontiguousarray(sent).view(np.uint8))
    found = outputs(graph, runs).reshape(expected.shape)
    equal(found, expected, **said(graph, plan, folder / "generated", hardware.name))
    assert (runs.stack_bytes or 0) <= size.stack_bound_bytes
    return size, runs
