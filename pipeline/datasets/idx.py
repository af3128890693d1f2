"""The IDX format of MNIST and its look-alikes.

Two zero bytes, a type code (8: unsigned byte), the number of axes, each extent as a big-endian
32-bit integer, then the elements row-major.
"""

from __future__ import annotations

import struct
from math import prod

import numpy as np

from pipeline.datasets.dataset import U8, Split
from pipeline.errors import ThimbleError

UNSIGNED_BYTE = 8


def parse(content: bytes, name: str) -> U8:
    """Return an IDX file's array; ``name`` is for the error message."""
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != UNSIGNED_BYTE:
        raise ThimbleError(f"{name} is not an IDX file of unsigned bytes")
    header = 4 + 4 * content[3]
    if len(content) < header:
        raise ThimbleError(f"{name} is cut off in its header")
    shape = struct.unpack(f">{content[3]}I", content[4:header])
    if len(content) != header + prod(shape):
        raise ThimbleError(f"{name} has {len(content) - header} of {prod(shape)} elements")
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape).copy()  # writable


def split(files: dict[str, bytes], part: str) -> Split:
    """The images and labels of ``part`` (``train`` or ``t10k``), as (n, h, w, 1) and (n,)."""
    images, labels = f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte"
    return Split(parse(files[images], images)[..., None], parse(files[labels], labels))
