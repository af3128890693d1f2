"""A card's image sealed for one chip: ``python -m pipeline.sealed_image FOLDER KEY IMAGE``.

FOLDER is where ``card.img`` and ``card.json`` are (``generated`` of a run), KEY a file of 32 bytes
that the chip has, too, and IMAGE what is written to the card. The key goes nowhere else.
"""

from __future__ import annotations

import json
import secrets
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from pipeline.crc32 import crc32
from pipeline.errors import ThimbleError
from pipeline.sealing import TAG_BYTES

MANIFEST = "card.json"
IMAGE = "card.img"
KEY_BYTES = 32
SALT_BYTES = 16
VERSION = 2
IDENTITY = struct.Struct("<8sHHI16sI")
"""Magic, version, bytes of a block, blocks of the card, hashes of graph and plan, how it is
sealed."""
LEVELS = {"none": 0, "integrity": 1, "encrypted": 2}
FIRST = 0xFFFFFFFF
"""Start value of the sums of ``security=none``."""
HEADER, LAST = 0xFFFFFFFF, 0xFFFFFFFE
"""Numbers of the first and the last block, beside those of pieces."""


def identity(magic: bytes, block_bytes: int, blocks: int, hashes: bytes, security: str) -> bytes:
    return IDENTITY.pack(magic, VERSION, block_bytes, blocks, hashes, LEVELS[security])


def read_key(path: Path) -> bytes:
    """
    Raises:
        ThimbleError: there is none, or it has another length.
    """
    try:
        key = path.read_bytes()
    except OSError as error:
        raise ThimbleError(f"key {path}: {error.strerror}; it is a file of 32 bytes") from None
    if len(key) != KEY_BYTES:
        raise ThimbleError(
            f"key {path}: {len(key)} bytes, it has {KEY_BYTES}: head -c {KEY_BYTES} /dev/urandom"
        )
    return key


def seal(source: Path, key: bytes, image: Path, salt: bytes = b"") -> None:
    """The image of the folder ``source`` for the chip that has ``key``, whole or not at all.

    Args:
        salt: 16 bytes, for tests; else they are random, and never the same twice. From them and the
            key the image's own key is made.

    Raises:
        ThimbleError: the folder has no such image.
    """
    manifest = _manifest(source / MANIFEST)
    salt = salt or secrets.token_bytes(SALT_BYTES)
    cipher = ChaCha20Poly1305(derived(key, salt))
    encrypts = manifest["security"] == "encrypted"
    write(
        manifest,
        source / IMAGE,
        image,
        lambda number, content: sealed(cipher, number, content, encrypts),
        lambda number, said: cipher.encrypt(nonce(number), b"", said),
        salt,
    )


def write(
    manifest: dict[str, Any],
    source: Path,
    image: Path,
    piece: Callable[[int, bytes], bytes],
    tag: Callable[[int, bytes], bytes],
    salt: bytes,
) -> None:
    """A card's image, whole or not at all.

    Args:
        source: without tags.
        piece: tag and content as they lie on the card, of a piece's number and content; ``tag``:
            that of the first or the last block.
    """
    size, part = manifest["block_bytes"], image.with_name(f"{image.name}.part")
    ends = (HEADER, 0, "identity"), (LAST, manifest["blocks"] - 1, "last")
    try:
        with source.open("rb") as plain, part.open("wb") as file:
            for number, at, block, count in manifest["pieces"]:
                plain.seek(at)
                content = plain.read(count)
                if len(content) < count:
                    raise ThimbleError(f"{source} ends early: run stage generate again")
                file.seek(block * size)
                file.write(piece(number, content))
            for number, block, name in ends:
                said = bytes.fromhex(manifest[name]) + salt
                file.seek(block * size)
                file.write((said + tag(number, said)).ljust(size, b"\0"))
        part.replace(image)
    except OSError as error:
        raise ThimbleError(f"{error.filename or image}: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)


def derived(key: bytes, salt: bytes) -> bytes:
    """Return the key of an image: ``aead_derive`` of firmware/security."""
    return Cipher(algorithms.ChaCha20(key, salt), None).encryptor().update(bytes(KEY_BYTES))


def nonce(number: int, start: int = 0, frame: int = 0) -> bytes:
    """Return a piece's nonce; in an image, ``start`` of the chip and ``frame`` since are 0."""
    return struct.pack("<III", number, start, frame)


def sealed(cipher: ChaCha20Poly1305, number: int, content: bytes, encrypts: bool) -> bytes:
    """Return the tag, and what it is of."""
    if encrypts:
        whole = cipher.encrypt(nonce(number), content, None)
        return whole[-TAG_BYTES:] + whole[:-TAG_BYTES]
    return cipher.encrypt(nonce(number), b"", content) + content


def checked(number: int, content: bytes, frame: int = 0) -> bytes:
    """Return the tag of ``security=none``, a CRC and the number of the frame, and what it is of."""
    about = struct.pack("<III", number, frame, len(content))
    sum_ = crc32(content, crc32(about, FIRST))
    return struct.pack("<II", sum_, frame).ljust(TAG_BYTES, b"\0") + content


def _manifest(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        raise ThimbleError(
            f"{path.parent} has no image to seal: run with security=integrity or encrypted"
        ) from None
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict) or not {"pieces", "identity", "last"} <= set(found):
        raise ThimbleError(f"{path} is damaged: run stage generate again")
    return found


def main(arguments: list[str]) -> int:
    if len(arguments) != 3:
        print("python -m pipeline.sealed_image FOLDER KEY IMAGE", file=sys.stderr)
        return 2
    folder, key, image = map(Path, arguments)
    try:
        seal(folder, read_key(key), image)
    except ThimbleError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
