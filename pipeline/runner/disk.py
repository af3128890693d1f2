"""Say in one line, when files cannot be written, what the system says, where and what to do."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable
from pathlib import Path

from pipeline import home
from pipeline.errors import ThimbleError

UNWRITABLE = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "free some space"),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), "make it writable"),
}
"""System errors that say that a folder takes nothing more, and what ends that."""


def make_home() -> None:
    """Make the folder that is kept between runs.

    Raises:
        ThimbleError: it is not there and cannot be made.
    """
    place = home.home()
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ThimbleError(
            f"the cache's folder {place} cannot be made ({error.strerror}): make it possible, or "
            "set THIMBLE_HOME to a folder that can be written"
        ) from None


def said(error: OSError, folder: Path | None) -> str:
    """Return one line for ``error``, met by a run in ``folder``; None before it has one."""
    found = re.search(r"\[Errno (\d+)\]", str(error))  # all that shutil.copytree's errors have
    number = error.errno or (int(found[1]) if found else 0)
    reason = os.strerror(number) if number else str(error).splitlines()[0]
    file = str(error.filename or "")  # a failed write has none: where it was is not known
    places = {"the run's folder": folder or home.typed(), "the cache in": home.home()}
    named = [f"{what} {place}" for what, place in places.items() if file.startswith(str(place))]
    if number not in UNWRITABLE or (file and not named):
        return f"{reason}: {file or folder or 'before the run began'}"
    full = " or ".join(named or [f"{what} {place}" for what, place in places.items()])
    return (
        f"{full} cannot be written ({reason}): {UNWRITABLE[number]}, or choose another folder: for "
        "runs hydra.run.dir=FOLDER (hydra.sweep.dir=FOLDER), for the cache THIMBLE_HOME"
    )


def causes(error: BaseException | None) -> Iterable[BaseException]:
    """``error`` and what it came from, the latest first."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
