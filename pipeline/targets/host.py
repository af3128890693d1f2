"""The native program: the board's own sources, exact outputs, a whole test set in seconds."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.codegen.card.image import NAME
from pipeline.errors import ThimbleError
from pipeline.sealed_image import MANIFEST
from pipeline.targets import card, parameters, protocol, tools
from pipeline.targets.progress import counted
from pipeline.targets.protocol import Command
from pipeline.targets.runs import Images, check_images, in_parallel, shares

IMAGES_A_RUN = 250


def talk(program: Path, stream: bytes) -> bytes:
    """Everything ``program`` answers to ``stream``. Raises ThimbleError when it crashes."""
    try:
        done = subprocess.run(
            [program.resolve()], cwd=program.parent, input=stream, capture_output=True, check=False
        )
    except OSError as error:
        raise ThimbleError(f"{program} does not start ({error}): run stage build again") from None
    if done.returncode:
        said = tools.telling(done.stderr.decode(errors="replace"))
        raise ThimbleError(f"{program} ended with {done.returncode}: {said}")
    return done.stdout


def identify(program: Path) -> protocol.Identity:
    answers = protocol.replies(talk(program, protocol.encode(Command.IDENTIFY)))
    if len(answers) != 1:
        raise protocol.FrameError(f"{program} gave {len(answers)} answers to one question")
    return protocol.identity(protocol.accept(answers[0], Command.IDENTIFY))


@contextmanager
def runnable(program: Path) -> Iterator[Path]:
    """Yield a copy that may be executed: a cache of files keeps no permissions."""
    with tempfile.TemporaryDirectory(prefix="thimble-") as folder:
        copy = Path(folder) / program.name
        try:
            shutil.copyfile(program, copy)
        except OSError as error:
            raise ThimbleError(f"{program}: {error.strerror}: run stage build again") from None
        copy.chmod(0o700)
        image = program.parent / NAME
        if (program.parent / MANIFEST).exists():
            card.insert(program.parent, copy.parent)
        elif image.exists():  # which it does not change
            (copy.parent / NAME).symlink_to(image.resolve())
        yield copy


def infer(program: Path, images: Images) -> npt.NDArray[Any]:
    """(images, ...) uint8 -> (images, outputs), on all cores.

    Parameters that are not in the program are sent first, from the file beside it.
    """
    with runnable(program) as copy:
        who = identify(copy)
        return _infer(copy, who, parameters.wanted(program.parent, who.parameter_bytes), images)


def _infer(
    program: Path, who: protocol.Identity, loaded: bytes, images: Images
) -> npt.NDArray[Any]:
    check_images(images, who.input_bytes)
    before = protocol.encode(Command.LOAD, loaded) if loaded else b""

    def run(part: slice) -> npt.NDArray[Any]:
        stream = b"".join(protocol.encode(Command.INFER, i.tobytes()) for i in images[part])
        answers = protocol.replies(talk(program, before + stream))
        if before and answers:
            protocol.accept(answers.pop(0), Command.LOAD)
        if len(answers) != len(images[part]):
            raise protocol.FrameError(
                f"{program} gave {len(answers)} answers to {len(images[part])} images"
            )
        advance(len(answers))
        rows = [protocol.outputs(protocol.accept(a, Command.INFER), who) for a in answers]
        return np.stack(rows)

    if not len(images):
        return np.zeros((0, who.outputs), who.dtype)
    with counted("host build", len(images)) as advance:
        parts = list(shares(len(images), IMAGES_A_RUN, who.in_turn))
        return np.concatenate(in_parallel(run, parts))
