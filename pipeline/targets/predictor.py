"""The generated C as a shared library: whole data sets through the firmware's own arithmetic.

from pipeline.targets.predictor import Predictor

predictor = Predictor.of("outputs/2026-01-31/12-00-00-000000")  # a run's folder
outputs = predictor.predict(frames)  # (n, *input shape) int8 -> (n, *output shape) int8
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline import prefix
from pipeline.artifacts import write_json
from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.frames import integers
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import Tensor
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan
from pipeline.targets import tools
from pipeline.targets.harness import FIRMWARE
from pipeline.targets.shared_library import CALLS, COMPILER, SharedLibrary, command

SWAPS = "storage.h"
"""Is among the sources that need a card."""

STRICT = ("-Wall", "-Wextra", "-Werror")


class Predictor:
    """A network's C, compiled and loaded. Calls from several threads wait for each other; several
    predictors run side by side.

    Attributes:
        inputs, outputs: the tensors by name: shape, integer type, and what their integers mean.
        input, output: that of which there is one.
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
        self._graph = graph
        self.inputs = {name: graph.tensors[name] for name in graph.inputs}
        self.outputs = {name: graph.tensors[name] for name in graph.outputs}
        with tempfile.TemporaryDirectory(prefix="thimble-") as name:
            tools.require(COMPILER, "gcc", "builds the network as a library")
            source = write(Path(name), sources, graph.name)
            tools.run(command(source, *STRICT), Path(name), "compiling the network")
            self._library = SharedLibrary(Path(name), threads)
        sizes = [sum(t.size * t.dtype.bits // 8 for t in ends.values())
                 for ends in (self.inputs, self.outputs)]  # fmt: skip
        if [self._library.input_bytes, self._library.output_bytes] != sizes:
            raise ThimbleError(f"the generated C is not of the network {graph.name}")

    @classmethod
    def build(cls, graph: Graph, plan: Plan, hardware: Hardware, threads: int = 1) -> Predictor:
        """Build a predictor of a graph and a plan of it, generated for ``hardware``."""
        return cls(generate(graph, plan, hardware, {}), graph, threads)

    @classmethod
    def of(cls, run_dir: str | Path, threads: int = 1) -> Predictor:
        """Build a predictor of what a run generated, whatever board it is for. ``run_dir`` is the
        folder that the run printed (``run_dir`` in its JSON)."""
        folder = Path(run_dir)
        return cls(generated(folder), Graph.load(folder), threads)

    @property
    def input(self) -> Tensor:
        return self.inputs[self._graph.input]

    @property
    def output(self) -> Tensor:
        return self.outputs[self._graph.output]

    def predict(self, images: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """(n, *input shape) -> (n, *output shape), of the tensors' own integer types.

        Raises:
            ThimbleError: for images of another shape or type, and several inputs or outputs.
        """
        return self.by_name({self.input.name: images})[self.output.name]

    def by_name(self, given: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        """{input: (n, *its shape)} -> {output: (n, *its shape)}, of the tensors' own integer types.

        Raises:
            ThimbleError: an input is missing, or of another shape or type.
        """
        frames = list[npt.NDArray[np.uint8]]()
        for name, tensor in self.inputs.items():
            if name not in given:
                raise ThimbleError(f"the network takes {', '.join(self.inputs)}: {name} is missing")
            images, dtype = given[name], np.dtype(str(tensor.dtype))
            if images.shape[1:] != tensor.shape or images.dtype != dtype:
                raise ThimbleError(
                    f"the network takes arrays (n, {', '.join(map(str, tensor.shape))}) of "
                    f"{dtype}, not {images.shape} of {images.dtype}; pipeline.frames.stored makes "
                    "them of images"
                )
            frames.append(
                np.ascontiguousarray(images).reshape(len(images), tensor.size).view(np.uint8)
            )
        replies = np.empty((len(frames[0]), self._library.output_bytes), np.uint8)
        try:
            self._library.predict(np.concatenate(frames, axis=1), replies)
        except RuntimeError as error:
            raise ThimbleError(str(error)) from None
        ends = np.cumsum([tensor.size * tensor.dtype.bits // 8 for tensor in self.outputs.values()])
        parts = zip(self.outputs.values(), np.split(replies, ends[:-1], axis=1), strict=True)
        return {
            of.name: np.ascontiguousarray(part).view(str(of.dtype)).reshape(len(part), *of.shape)
            for of, part in parts
        }


def generated(run_dir: Path) -> dict[str, str]:
    """Return the C of a run, text by file name."""
    found = {file.name: file.read_text() for file in sorted((run_dir / "generated").glob("*.[ch]"))}
    if not found:
        raise ThimbleError(f"{run_dir} has no generated C: run it with until=generate or later")
    return found


def export(run_dir: Path, folder: Path) -> dict[str, Any]:
    """Write into ``folder`` what ``shared_library.Network`` loads of a run; returns what
    ``network.json`` says.

    Raises:
        ThimbleError: there is no C, it swaps with a card, or a tensor is not of whole bytes.
    """
    graph = Graph.load(run_dir)
    inputs, outputs = ([graph.tensors[n] for n in names] for names in (graph.inputs, graph.outputs))
    for image, output in product(inputs, outputs):
        if image.dtype.bits != 8 or output.dtype.bits < 8:
            kinds = f"takes {image.dtype} and gives {output.dtype}"
            raise ThimbleError(f"{graph.name} {kinds}: no bytes")
    about: dict[str, Any] = {
        "source": write(folder, generated(run_dir), graph.name),
        "inputs": [_about(each) | {"levels": integers(each).tolist()} for each in inputs],
        "outputs": [_about(each) | {"units": list(each.units)} for each in outputs],
    }
    write_json(folder / "network.json", about)
    return about


def _about(of: Tensor) -> dict[str, Any]:
    return {"name": of.name, "shape": list(of.shape), "type": str(of.dtype)}


def write(folder: Path, sources: Mapping[str, str], network: str) -> str:
    """Write ``sources`` and what calls them into ``folder``; returns the file to compile.

    Raises:
        ThimbleError: they swap with a card.
    """
    if SWAPS in sources:
        raise ThimbleError(
            f"{network} swaps with a card, which a library does not have: for the same outputs "
            "take a run with hardware=host strategy=ordinary"
        )
    for name, content in sources.items():
        (folder / name).write_text(content)
    names = prefix.of(folder)
    calls = (FIRMWARE / "ports" / "library" / CALLS).read_text()
    (folder / CALLS).write_text(names.files({CALLS: calls})[CALLS])
    return names.source
