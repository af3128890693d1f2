"""The generated C as a shared library: whole data sets through the firmware's own arithmetic.

from pipeline.targets.predictor import Predictor

predictor = Predictor.of("outputs/2026-01-31/12-00-00-000000")  # a run's folder
outputs = predictor.predict(frames)  # (n, *input shape) int8 -> (n, *output shape) int8
"""

from __future__ import annotations

import ctypes
import platform
import shutil
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline import prefix
from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import Tensor
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan
from pipeline.targets import tools
from pipeline.targets.harness import FIRMWARE

COMPILER = "cc"
FLAGS = ("-std=gnu99", "-O3", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror")
SWAPS = "storage.h"
"""Is among the sources that need a card."""

FEWEST_IMAGES = 16
"""For a thread to be worth its start."""


class Predictor:
    """A network's C, compiled and loaded. Calls from several threads wait for each other; several
    predictors run side by side.

    Attributes:
        input, output: the tensors: shape, integer type, and what their integers mean.
    """

    def __init__(self, sources: dict[str, str], graph: Graph, threads: int = 1) -> None:
        """
        Args:
            sources: what stage generate writes, text by file name.
            threads: how many images are computed at a time; each has memory of its own.

        Raises:
            ThimbleError: there is no compiler, or the sources are not of this graph, or swap with a
                card.
        """
        if SWAPS in sources:
            raise ThimbleError(
                f"{graph.name} swaps with a card, which a library does not have: for the same "
                "outputs take a run with hardware=host strategy=ordinary"
            )
        self.input: Tensor = graph.tensors[graph.input]
        self.output: Tensor = graph.tensors[graph.output]
        self._lock = threading.Lock()
        with tempfile.TemporaryDirectory(prefix="thimble-") as name:
            library = _compiled(Path(name), sources)
            self._copies = [_loaded(library, n) for n in range(max(1, threads))]
        sizes = [t.size * t.dtype.bits // 8 for t in (self.input, self.output)]
        if [self._copies[0].thimble_input_bytes(), self._copies[0].thimble_output_bytes()] != sizes:
            raise ThimbleError(f"the generated C is not of the network {graph.name}")

    @classmethod
    def build(cls, graph: Graph, plan: Plan, hardware: Hardware, threads: int = 1) -> Predictor:
        """For a graph and a plan of it, generated for ``hardware``."""
        return cls(generate(graph, plan, hardware, {}), graph, threads)

    @classmethod
    def of(cls, run_dir: str | Path, threads: int = 1) -> Predictor:
        """For what a run generated, whatever board it is for. ``run_dir`` is the folder that the
        run printed (``run_dir`` in its JSON)."""
        folder = Path(run_dir)
        sources = {
            file.name: file.read_text() for file in sorted((folder / "generated").glob("*.[ch]"))
        }
        if not sources:
            raise ThimbleError(f"{folder} has no generated C: run it with until=generate or later")
        return cls(sources, Graph.load(folder), threads)

    def predict(self, images: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """(n, *input shape) -> (n, *output shape), of the tensors' own integer types.

        Raises:
            ThimbleError: for images of another shape or type.
        """
        dtype = np.dtype(str(self.input.dtype))
        if images.shape[1:] != self.input.shape or images.dtype != dtype:
            raise ThimbleError(
                f"the network takes arrays (n, {', '.join(map(str, self.input.shape))}) of "
                f"{dtype}, not {images.shape} of {images.dtype}; pipeline.frames.stored makes "
                "them of images"
            )
        outputs = np.empty((len(images), *self.output.shape), str(self.output.dtype))
        given = np.ascontiguousarray(images)
        with self._lock:
            used = self._copies[: max(1, len(images) // FEWEST_IMAGES)]
            bounds = np.linspace(0, len(images), len(used) + 1).astype(int)
            with ThreadPoolExecutor(len(used)) as pool:
                running = [
                    pool.submit(_run, library, given[start:stop], outputs[start:stop])
                    for library, start, stop in zip(used, bounds[:-1], bounds[1:], strict=True)
                ]
                for part in running:
                    part.result()
        return outputs


def _run(library: ctypes.CDLL, images: npt.NDArray[Any], outputs: npt.NDArray[Any]) -> None:
    """ctypes lets other threads run meanwhile."""
    done = library.thimble_predict(images.ctypes.data, outputs.ctypes.data, len(images))
    if done != len(images):
        raise ThimbleError(f"the network refused image {done} of {len(images)}")


def _compiled(folder: Path, sources: dict[str, str]) -> Path:
    tools.require(COMPILER, "gcc", "builds the network as a library")
    for name, content in sources.items():
        (folder / name).write_text(content)
    names = prefix.of(folder)
    own = (FIRMWARE / "ports" / "library" / "predict.c").read_text()
    (folder / "predict.c").write_text(names.files({"predict.c": own})["predict.c"])
    tuned = ("-march=native",) if platform.machine() == "x86_64" else ()
    command = [COMPILER, *FLAGS, *tuned, names.source, "predict.c", "-o", "library.so"]
    tools.run(command, folder, "compiling the network")
    return folder / "library.so"


def _loaded(library: Path, number: int) -> ctypes.CDLL:
    """One more copy of the library: a file of another name has static memory of its own."""
    copy = library.with_name(f"copy{number}.so")
    shutil.copyfile(library, copy)
    found = ctypes.CDLL(str(copy))
    found.thimble_predict.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    found.thimble_predict.restype = ctypes.c_int64
    for size in (found.thimble_input_bytes, found.thimble_output_bytes):
        size.argtypes, size.restype = [], ctypes.c_uint32
    return found
