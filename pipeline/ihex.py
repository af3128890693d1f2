"""Intel HEX (Intel, 1988), the format flashers take: bytes and where they go, with check sums."""

from __future__ import annotations

from pathlib import Path

from pipeline.errors import ThimbleError

DATA, END, SEGMENT, START_SEGMENT, LINEAR, START_LINEAR = range(6)
RECORD_BYTES = 16


def dump(content: bytes) -> str:
    """Return the text of a file that holds ``content`` from address 0 on."""
    lines = []
    for at in range(0, len(content), RECORD_BYTES):
        if at and at % 0x10000 == 0:
            lines.append(_line(0, LINEAR, (at >> 16).to_bytes(2)))
        lines.append(_line(at % 0x10000, DATA, content[at : at + RECORD_BYTES]))
    return "".join(f"{line}\n" for line in (*lines, _line(0, END, b"")))


def _line(address: int, kind: int, data: bytes) -> str:
    record = bytes([len(data), *address.to_bytes(2), kind, *data])
    return f":{record.hex().upper()}{-sum(record) & 0xFF:02X}"


def load(path: Path) -> dict[int, int]:
    """Byte by address. Raises ThimbleError when a record is damaged or the end is missing."""
    content: dict[int, int] = {}
    base = 0
    ended = False
    for number, line in enumerate(path.read_text(errors="replace").split(), start=1):
        try:
            record = bytes.fromhex(line.removeprefix(":"))
        except ValueError:
            record = b""
        if not line.startswith(":") or len(record) < 5 or record[0] != len(record) - 5:
            raise ThimbleError(f"{path}:{number} is no Intel HEX record: build the firmware again")
        if sum(record) & 0xFF:
            raise ThimbleError(f"{path}:{number} is damaged (checksum): build the firmware again")
        address, kind, data = int.from_bytes(record[1:3]), record[3], record[4:-1]
        if kind == DATA:
            content.update({base + address + i: byte for i, byte in enumerate(data)})
        elif kind in (SEGMENT, LINEAR):
            base = int.from_bytes(data) << (4 if kind == SEGMENT else 16)
        elif kind == END:
            ended = True
    if not ended:
        raise ThimbleError(f"{path} ends too early: build the firmware again")
    return content


def flash_image(path: Path) -> bytes:
    """Return the program from address 0 on; gaps read 0xFF as erased flash does."""
    content = load(path)
    return bytes(content.get(address, 0xFF) for address in range(max(content, default=-1) + 1))
