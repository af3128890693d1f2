"""Generated C as a shared library of this computer, called through ctypes.

Imports nothing of the project: a model in MLflow carries this file beside its C, and loads it by
``_load_pyfunc`` where nothing else of the project is (pipeline/tracking/model.py).
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import platform
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

COMPILER = "cc"
FLAGS = ("-std=gnu99", "-O3", "-fPIC", "-shared")
CALLS = "predict.c"
"""Source of many inferences in one call, in firmware/ports/library."""

FEWEST_IMAGES = 16
"""Fewest images for which a thread is worth its start."""


def command(source: str, *flags: str) -> list[str]:
    """Return the command that compiles ``source`` and CALLS into ``library.so``."""
    tuned = ("-march=native",) if platform.machine() == "x86_64" else ()
    return [COMPILER, *FLAGS, *flags, *tuned, source, CALLS, "-o", "library.so"]


class SharedLibrary:
    """``library.so`` of ``folder``, which is not needed any more afterwards.

    Args:
        copies: how many images are computed at a time; each has memory of its own.
    """

    def __init__(self, folder: Path, copies: int = 1) -> None:
        self._lock = threading.Lock()
        self._copies = [_loaded(folder / "library.so", n) for n in range(max(1, copies))]
        self.input_bytes = int(self._copies[0].thimble_input_bytes())
        self.output_bytes = int(self._copies[0].thimble_output_bytes())

    def predict(self, images: npt.NDArray[Any], outputs: npt.NDArray[Any]) -> None:
        """Fill ``outputs``, one row for each of ``images``; both as the network stores them.

        Raises:
            RuntimeError: the network refused an image.
        """
        given = np.ascontiguousarray(images)
        fewest = len(images) + 1 if self._copies[0].thimble_in_turn() else FEWEST_IMAGES
        used = self._copies[: max(1, len(images) // fewest)]
        bounds = np.linspace(0, len(images), len(used) + 1).astype(int)
        with self._lock, ThreadPoolExecutor(len(used)) as pool:
            running = [
                pool.submit(_run, library, given[start:stop], outputs[start:stop])
                for library, start, stop in zip(used, bounds[:-1], bounds[1:], strict=True)
            ]
            for part in running:
                part.result()


def _run(library: ctypes.CDLL, images: npt.NDArray[Any], outputs: npt.NDArray[Any]) -> None:
    """ctypes lets other threads run meanwhile."""
    done = library.thimble_predict(images.ctypes.data, outputs.ctypes.data, len(images))
    if done != len(images):
        raise RuntimeError(f"the network refused image {done} of {len(images)}")


def _loaded(library: Path, number: int) -> ctypes.CDLL:
    """Return one more copy of the library: a file of another name has static memory of its own."""
    copy = library.with_name(f"copy{number}.so")
    shutil.copyfile(library, copy)
    found = ctypes.CDLL(str(copy))
    found.thimble_predict.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    found.thimble_predict.restype = ctypes.c_int64
    for size in (found.thimble_input_bytes, found.thimble_output_bytes):
        size.argtypes, size.restype = [], ctypes.c_uint32
    return found


class Network:
    """A network as MLflow calls it, compiled anew where it is loaded: ``folder`` has its C, and
    ``network.json`` with the source's name, names, shapes and types of inputs and outputs, the
    integer of each byte of an image (``levels``), and the outputs' scale and zero point."""

    def __init__(self, folder: Path) -> None:
        self.about = json.loads((folder / "network.json").read_text())
        if not shutil.which(COMPILER):
            raise RuntimeError(f"the network is C: install a compiler that is called {COMPILER}")
        with tempfile.TemporaryDirectory(prefix="thimble-") as name:
            build = Path(shutil.copytree(folder, name, dirs_exist_ok=True))
            subprocess.run(command(self.about["source"]), cwd=build, check=True)
            self._library = SharedLibrary(build, os.cpu_count() or 1)

    def predict(
        self,
        images: npt.NDArray[np.uint8] | Mapping[str, npt.NDArray[np.uint8]],
        params: Mapping[str, Any] | None = None,
    ) -> npt.NDArray[Any] | dict[str, npt.NDArray[Any]]:
        """(n, *input shape) of bytes, as data sets have images -> (n, *output shape): what the
        outputs mean, or with ``{"integers": True}`` what the firmware gives. Several inputs, or
        outputs, are arrays by name."""
        inputs, outputs = self.about["inputs"], self.about["outputs"]
        given = images if isinstance(images, Mapping) else {inputs[0]["name"]: images}
        frames = [np.array(of["levels"], of["type"])[given[of["name"]]] for of in inputs]
        flat = [each.reshape(len(each), -1).view(np.uint8) for each in frames]
        replies = np.empty((len(flat[0]), self._library.output_bytes), np.uint8)
        self._library.predict(np.concatenate(flat, axis=1), replies)
        found, stop = dict[str, npt.NDArray[Any]](), 0
        for of in outputs:
            start, shape = stop, (len(replies), *of["shape"])
            stop += math.prod(of["shape"]) * np.dtype(of["type"]).itemsize
            stored = np.ascontiguousarray(replies[:, start:stop]).view(of["type"]).reshape(shape)
            scale, zero_point = of["units"]
            real = (scale * (stored.astype(np.float64) - zero_point)).astype(np.float32)
            found[of["name"]] = stored if (params or {}).get("integers") else real
        return found if len(outputs) > 1 else found[outputs[0]["name"]]


def _load_pyfunc(path: str) -> Network:
    """MLflow calls this; ``path`` is the folder that was logged."""
    return Network(Path(path))
