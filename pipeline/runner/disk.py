"""What the system says when files cannot be written, as one line that says where and what to do."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from pipeline import home
from pipeline.errors import ThimbleError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
UNWRITABLE = {
    **dict.fromkeys(FULL, "free some space"),
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
        default = home.default()
        if not os.environ.get("THIMBLE_HOME"):
            raise ThimbleError(
                f"the cache's folder {default} cannot be made ({error.strerror}): make it "
                "possible, or set THIMBLE_HOME to another folder"
            ) from None
        blocked = error.errno in (errno.EEXIST, errno.ENOTDIR)
        in_the_way = ", a file is in the way" if blocked else ""
        raise ThimbleError(
            f"THIMBLE_HOME={place} cannot be made ({error.strerror}{in_the_way}): set it to a "
            f"folder that can be written, or unset it to use {default}"
        ) from None


def said(error: OSError, folder: Path | None) -> str:
    """One line for ``error``, met by a run in ``folder``; None before it has one."""
    number = _number(error)
    reason = os.strerror(number) if number else str(error).splitlines()[0]
    if number not in UNWRITABLE:
        return f"{reason}: {error.filename or folder or 'before the run began'}"
    place = str(error.filename or "") or _fuller(folder or home.typed(), home.home())
    advice = UNWRITABLE[number]
    if folder and number not in FULL and not place.startswith((str(folder), str(home.home()))):
        return f"{reason}: {place}"
    if place.startswith(str(home.home())):
        advice += ", or set THIMBLE_HOME to another folder"
        return f"the cache in {home.home()} cannot be written ({reason}): {advice}"
    advice += ", or choose another with hydra.run.dir=FOLDER (hydra.sweep.dir=FOLDER)"
    named = f" {folder}" if folder else ""
    return f"the run's folder{named} cannot be written ({reason}): {advice}"


def causes(error: BaseException | None) -> Iterable[BaseException]:
    """``error`` and what it came from, the latest first."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _number(error: OSError) -> int:
    """Its errno; shutil.copytree's errors only have it in their text, and so does SQLite's."""
    if error.errno is not None:
        return error.errno
    found = re.search(r"\[Errno (\d+)\]", str(error))
    return int(found[1]) if found else 0


def _fuller(*folders: Path) -> str:
    """Of ``folders`` the one whose disk has less room: a failed write names no file.

    The first of those on one disk, whose room others may change between two looks at it.
    """
    disks: dict[int, Path] = {}
    for folder in folders:
        disks.setdefault(_nearest(folder).stat().st_dev, folder)
    return str(min(disks.values(), key=lambda folder: shutil.disk_usage(_nearest(folder)).free))


def _nearest(folder: Path) -> Path:
    """``folder``, or the nearest above it that is there."""
    while not folder.exists():
        folder = folder.parent
    return folder
