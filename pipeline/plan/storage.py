"""One byte array a memory, read and written in elements of 4 to 32 bits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipeline.graph.tensor import DType, IntArray


class Storage:
    """Bytes of one memory, with the highest nibble ever touched.

    Starts filled with ``garbage``, as a chip's memory does.
    """

    def __init__(self, size_bytes: int, garbage: int = 0xA5) -> None:
        self.bytes: npt.NDArray[np.uint8] = np.full(size_bytes, garbage, dtype=np.uint8)
        self.top_nibbles = 0

    def read(self, addresses: IntArray, dtype: DType) -> IntArray:
        """Elements at the given nibble addresses; same shape as ``addresses``."""
        if dtype.bits == 8 and not (addresses & 1).any():
            self._touch(addresses, dtype)
            kind = np.int8 if dtype.signed else np.uint8
            return np.asarray(self.bytes[addresses >> 1].view(kind), dtype=np.int64)
        result = np.zeros(addresses.shape, dtype=np.int64)
        for part in range(dtype.bits // 4):
            nibble = addresses + part
            byte = self.bytes[nibble >> 1].astype(np.int64)
            result |= ((byte >> (4 * (nibble & 1))) & 15) << (4 * part)
        self._touch(addresses, dtype)
        if dtype.signed:
            result -= (result >> (dtype.bits - 1)) << dtype.bits
        return result

    def write(self, addresses: IntArray, values: IntArray, dtype: DType) -> None:
        """Store the low bits of ``values`` (same shape); a nibble leaves its byte's other half."""
        if dtype.bits == 8 and not (addresses & 1).any():
            self._touch(addresses, dtype)
            self.bytes[addresses >> 1] = values & 255
            return
        for part in range(dtype.bits // 4):
            nibble = (addresses + part).reshape(-1)
            value = ((values >> (4 * part)) & 15).reshape(-1).astype(np.uint8)
            for half in (0, 1):
                chosen = (nibble & 1) == half
                byte = nibble[chosen] >> 1
                kept = self.bytes[byte] & np.uint8(0xF0 if half == 0 else 0x0F)
                self.bytes[byte] = kept | (value[chosen] << np.uint8(4 * half))
        self._touch(addresses, dtype)

    def read_run(self, start: int, count: int, dtype: DType) -> IntArray:
        """``count`` elements of whole bytes side by side from nibble ``start``, a byte, on."""
        kind = f"<{'i' if dtype.signed else 'u'}{dtype.bits // 8}"
        return self._run(start, count, dtype).view(kind).astype(np.int64)

    def write_run(self, start: int, values: IntArray, dtype: DType) -> None:
        """The inverse of ``read_run``."""
        low = values.reshape(-1).astype(f"<u{dtype.bits // 8}")
        self._run(start, values.size, dtype)[:] = low.view(np.uint8)

    def _run(self, start: int, count: int, dtype: DType) -> npt.NDArray[np.uint8]:
        first, last = start // 2, start // 2 + count * dtype.bits // 8
        if not 0 <= first <= last <= len(self.bytes):
            raise IndexError(f"bytes {first} to {last} of {len(self.bytes)}")
        self.top_nibbles = max(self.top_nibbles, 2 * last)
        return self.bytes[first:last]

    def spoil(self, addresses: IntArray) -> None:
        """Overwrite the nibbles ``addresses`` with garbage."""
        nibble = DType(4, signed=False)
        self.write(addresses, np.full(addresses.shape, 0x5, dtype=np.int64), nibble)

    def _touch(self, addresses: IntArray, dtype: DType) -> None:
        if addresses.size:
            self.top_nibbles = max(self.top_nibbles, int(addresses.max()) + dtype.bits // 4)


class Stream(Storage):
    """Input that arrives once: a read takes the next elements, whatever address it names."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self.next_nibble = 0

    def read_run(self, start: int, count: int, dtype: DType) -> IntArray:
        start, self.next_nibble = self.next_nibble, self.next_nibble + count * dtype.bits // 4
        return super().read_run(start, count, dtype)

    def read(self, addresses: IntArray, dtype: DType) -> IntArray:
        """Return the next elements, handed out in the order of the addresses asked for."""
        width = dtype.bits // 4
        order = np.argsort(addresses, axis=None, kind="stable")
        arriving = np.empty(addresses.size, dtype=np.int64)
        arriving[order] = self.next_nibble + width * np.arange(addresses.size)
        self.next_nibble += width * addresses.size
        return super().read(arriving.reshape(addresses.shape), dtype)
