"""The user's own images in folders: one folder a class, its name the class's."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps

from pipeline import axes, given
from pipeline.artifacts import Arrays, regular
from pipeline.datasets.dataset import SPLIT_SEED, U8, Dataset, Split, parts_of
from pipeline.datasets.raw import raw
from pipeline.errors import ThimbleError

TRAIN, VALIDATION, TEST = "train", "validation", "test"
KINDS = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".npy")
MODES = {1: "L", 3: "RGB"}
MOST_CLASSES = 256
MOST_PIXELS = Image.MAX_IMAGE_PIXELS or 1 << 26
"""Most pixels of a picture, or values of an array: Pillow's own limit, 256 MiB in colour."""

Resize = Literal["crop", "stretch", "none"]
Found = list[tuple[Path, int]]
"""Files and their labels."""


@dataclass(frozen=True)
class FolderDataset(Dataset):
    """``path`` has a folder for each class; or ``train`` and perhaps ``validation`` and ``test``,
    with these in them. Labels number the classes of the training images in alphabetical order.

    PNG, JPEG, BMP and WebP images are brought to ``shape``. ``.npy`` arrays, (h, w, c), (h, w) or
    (length,), of uint8 or what ``raw`` takes for it, have that shape already.

    Attributes:
        path: the folder.
        shape: height, width, channels; empty: those of the first image.
        resize: ``crop`` (scaled, the centre kept), ``stretch`` or ``none``.
        validation: images held out where there is no folder of them; 0: a tenth.
        test: the same for the test set; 0: a fifth.
    """

    path: str = ""
    shape: tuple[int, ...] = ()
    resize: Resize = "crop"
    validation: int = 0
    test: int = 0

    def arrays(self) -> Arrays:
        root = self._root()
        inner = {part: root / part for part in (TRAIN, VALIDATION, TEST) if (root / part).is_dir()}
        if inner and TRAIN not in inner:
            raise ThimbleError(f"data.path={root} has {', '.join(inner)}/ but no train/")
        whole = inner.get(TRAIN, root)
        classes = sorted(each.name for each in whole.iterdir() if _is_class(each))
        found = {part: _files(folder, classes) for part, folder in inner.items()}
        if not inner:
            found[TRAIN] = _files(root, classes)
        files = [file for part in found.values() for file, _ in part]
        _check_sizes(files)
        shape = self._shape(files)
        splits = {part: self._read(files, shape) for part, files in found.items()}
        for part, count, share in ((TEST, self.test, 5), (VALIDATION, self.validation, 10)):
            if part not in splits:
                splits[TRAIN], splits[part] = _hold_out(splits[TRAIN], part, count, share)
        return parts_of(splits[TRAIN], splits[VALIDATION], splits[TEST])

    def _root(self) -> Path:
        if not self.path:
            raise ThimbleError("data=folder needs data.path=FOLDER with a folder for each class")
        root = Path(self.path).expanduser()
        if not root.is_dir():
            raise ThimbleError(f"data.path={root} is no folder: data=folder takes one")
        return root

    def _shape(self, files: list[Path]) -> tuple[int, int, int]:
        if not self.shape:
            height, width, channels = _array(files[0], None, "none").shape
        elif len(self.shape) == 3 and min(self.shape) > 0:
            height, width, channels = self.shape
        else:
            raise ThimbleError(f"data.shape={list(self.shape)} must be [height,width,channels]")
        what = f"{len(files):,} images of {height}x{width}x{channels}"
        given.check(height * width * channels * len(files), f"data.path={self.path}", what)
        return height, width, channels

    def _read(self, files: Found, shape: tuple[int, int, int]) -> Split:
        images = np.empty((len(files), *shape), np.uint8)
        for index, (file, _) in enumerate(files):
            array = _array(file, shape, self.resize)
            if not axes.fits(array.shape, shape):
                mend = axes.advice(array.shape, shape)
                raise ThimbleError(
                    f"{file} is {axes.times(array.shape)}, not {axes.times(shape)}: "
                    f"{mend or 'use data.resize=crop for pictures, or another data.shape'}"
                )
            images[index] = array.reshape(shape)
        return Split(images, np.array([label for _, label in files], np.uint8))


def _is_class(path: Path) -> bool:
    return path.is_dir() and not path.name.startswith(".")


def _files(folder: Path, classes: list[str]) -> Found:
    """Return the images in ``folder``'s class folders, in a fixed order."""
    if not 0 < len(classes) <= MOST_CLASSES:
        raise ThimbleError(
            f"{folder} has {len(classes)} folders: one for each class is needed, "
            f"up to {MOST_CLASSES}"
        )
    found: Found = []
    for path in sorted(folder.iterdir()):
        if not _is_class(path):
            continue
        if path.name not in classes:
            raise ThimbleError(f"{path}: no training images have this class")
        files = sorted(file for file in path.iterdir() if file.suffix.lower() in KINDS)
        if not files:
            raise ThimbleError(f"{path} has no images: {', '.join(KINDS)} are read")
        found += [(file, classes.index(path.name)) for file in files]
    if not found:
        raise ThimbleError(f"{folder} has no folders: one for each class is needed")
    return found


def _array(file: Path, shape: tuple[int, int, int] | None, resize: Resize) -> U8:
    """Return one image as (h, w, c)."""
    if file.suffix.lower() == ".npy":
        return raw(_mapped(file), str(file))
    with _opened(file) as image:
        return _picture(ImageOps.exif_transpose(image), shape, resize)


@contextmanager
def _opened(file: Path) -> Iterator[Image.Image]:
    """Yield a picture whose header was read."""
    regular(file, str(file))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # MOST_PIXELS decides
            with Image.open(file) as opened:
                yield opened
    except (OSError, ValueError, EOFError, SyntaxError) as error:
        raise ThimbleError(f"{file} cannot be read: {error}") from None
    except Image.DecompressionBombError:
        raise ThimbleError(
            f"{file} has more than {2 * MOST_PIXELS:,} pixels, {MOST_PIXELS:,} are possible: make "
            "it smaller, or leave it out"
        ) from None


def _mapped(file: Path) -> npt.NDArray[Any]:
    """Return an ``.npy`` as (h, w, c), not read yet."""
    array = given.npy(file)
    if array.ndim not in (1, 2, 3):
        raise ThimbleError(
            f"{file} is {array.dtype} of {axes.times(array.shape) or 'no axes'}: (h, w, c), (h, w) "
            "or (length,) is needed"
        )
    return array.reshape({1: (1, -1, 1), 2: (*array.shape, 1)}.get(array.ndim, array.shape))


def _check_sizes(files: list[Path]) -> None:
    """Check every file's size by its header, before the first is read: compressed, an image of
    terabytes is small.

    Raises:
        ThimbleError: for one that is larger than it may be, or cannot be read.
    """
    for file in files:
        if file.suffix.lower() == ".npy":
            shape, values = (array := _mapped(file)).shape, array.size
        else:
            with _opened(file) as image:
                shape, values = (image.height, image.width), image.height * image.width
        if values > MOST_PIXELS:
            raise ThimbleError(
                f"{file} has {values:,} pixels ({axes.times(shape)}), {MOST_PIXELS:,} are "
                "possible: make it smaller, or leave it out"
            )


def _picture(image: Image.Image, shape: tuple[int, int, int] | None, resize: Resize) -> U8:
    channels = shape[2] if shape else 1 if image.mode in ("1", "L") else 3
    if channels not in MODES:
        raise ThimbleError(f"data.shape={list(shape or ())}: pictures have 1 or 3 channels")
    image = image.convert(MODES[channels])
    if shape and image.size != (shape[1], shape[0]) and resize != "none":
        size = (shape[1], shape[0])
        bilinear = Image.Resampling.BILINEAR
        if resize == "crop":
            image = ImageOps.fit(image, size, bilinear)
        else:
            image = image.resize(size, bilinear)
    array = np.asarray(image)
    return array if array.ndim == 3 else array[..., None]


def _hold_out(whole: Split, part: str, count: int, share: int) -> tuple[Split, Split]:
    """``count`` images, or one in ``share``, at random but always the same ones."""
    total = len(whole.labels)
    held = count or max(1, total // share)
    if not 0 < held < total:
        raise ThimbleError(
            f"data.{part}={count} of {total} training images: both parts need at least one"
        )
    order = np.random.default_rng(SPLIT_SEED).permutation(total)
    return whole.take(np.sort(order[held:])), whole.take(np.sort(order[:held]))
