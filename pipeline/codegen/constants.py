"""Constant arrays of the generated file: weights as the kernels walk them, and their tables."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from pipeline.codegen.render import comment, rows
from pipeline.errors import ThimbleError
from pipeline.graph.tensor import IntArray
from pipeline.hardware import LARGEST_ON_AVR

T = TypeVar("T")

LONGEST = 48
FAR = "nn_far_"
"""Prefix of the names of constants that need not be in the first 64 KiB of an AVR's flash."""
LONGEST_LIST = 1 << 16
"""Bytes that a person may still want to read as numbers."""
TEXT_BYTES = 24


@dataclass(frozen=True)
class Array:
    """A table as kernels read it; its text is its C name.

    Attributes:
        accessor: what reads an element where flash has addresses of its own.
        far: its address may have more than 16 bits; elements are bytes.
    """

    name: str
    accessor: str = ""
    far: bool = False

    def __str__(self) -> str:
        return self.name

    def read(self, index: str, pointer: str = "") -> str:
        """C of an element: of the table, or ``index`` after where ``pointer`` points into it."""
        if self.far:
            assert not pointer
            return f"nn_far8({self.name}, {index})"
        return read(self.accessor, f"{pointer or self.name}[{index}]")


def read(accessor: str, place: str) -> str:
    return f"{accessor}(&{place})" if accessor else place


@dataclass(frozen=True)
class Table:
    """One C array.

    Attributes:
        align: bytes that its address is a multiple of, where words of it are read.
        placed: what says that it is in flash where a qualifier does not.
    """

    name: str
    type: str
    values: IntArray
    about: str
    in_flash: bool
    align: int = 1
    placed: str = ""

    @property
    def definition(self) -> str:
        if self.placed == "NN_FAR" and len(self.values) > LARGEST_ON_AVR:
            return f"#if defined(__AVR__)\n{self._assembled}\n#else\n{self._defined}\n#endif"
        return self._defined

    @property
    def _defined(self) -> str:
        qualifier = "const " if self.in_flash else ""
        if self.align > 1:
            qualifier += f"__attribute__((aligned({self.align}))) "
        length = "" if self.is_text else len(self.values)
        place = f" {self.placed}" if self.placed else ""
        return f"static {qualifier}{self.type} {self.name}[{length}]{place} ={self._initializer};"

    @property
    def _assembled(self) -> str:
        """Define in assembly, as bytes, what is too large for C."""
        values = rows(self.values.tolist()).splitlines()
        block = [
            '.pushsection .lowtext.nn,\\"a\\",@progbits',
            f".type {self.name}, @object",
            f"{self.name}:",
            *(f".byte {line.strip().rstrip(',')}" for line in values),
            f".size {self.name}, {len(self.values)}",
            ".popsection",
        ]
        text = "\n".join(f'    "{line}\\n"' for line in block)
        return f"extern const {self.type} {self.name}[];\n__asm__(\n{text});"

    @property
    def content(self) -> bytes:
        """Its bytes in memory, those of an element from the least significant one on."""
        kind = np.dtype(self.type.removesuffix("_t")).newbyteorder("<")
        return self.values.astype(kind).tobytes()

    @property
    def is_text(self) -> bool:
        """Compilers take a string of a million bytes in no time, a million numbers in seconds and
        100 MB. A string has a 0 more."""
        return self.type in ("int8_t", "uint8_t") and len(self.values) > LONGEST_LIST

    @property
    def _initializer(self) -> str:
        if not self.is_text:
            return f" {{\n{rows(self.values.tolist())}\n}}"
        codes = [f"\\{byte:03o}" for byte in range(256)]
        data = (self.values & 255).astype(np.uint8).tobytes()
        lines = (data[start : start + TEXT_BYTES] for start in range(0, len(data), TEXT_BYTES))
        return "\n" + "\n".join(f'    "{"".join([codes[b] for b in line])}"' for line in lines)


@dataclass
class Names:
    """C identifiers, each given once; what a function has besides is called after it, behind "__",
    which none of them has."""

    given: dict[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def __call__(self, name: str, kind: str = "") -> str:
        """The identifier of ``name``; ``kind`` tells names apart that are of different things."""
        key = f"{name}\0{kind}"
        if key not in self.given:
            self.given[key] = self.fresh(name, kind)
        return self.given[key]

    def fresh(self, name: str, kind: str = "") -> str:
        """Return an identifier like ``name`` that is not given yet."""
        plain = re.sub(r"[\W_]+", "_", name, flags=re.ASCII).strip("_")[:LONGEST].rstrip("_")
        stem = "_".join(part for part in ("nn", plain.lower(), kind) if part)
        if stem.startswith(FAR):
            stem = f"nn_of_{stem.removeprefix('nn_')}"
        chosen, number = stem, 2
        while chosen in self.used:
            chosen, number = f"{stem}_{number}", number + 1
        self.used.add(chosen)
        return chosen


def variable(name: str) -> str:
    """A loop variable's C name: one or two letters as they are, which only two keywords are."""
    if re.fullmatch("[a-z]{1,2}", name) and name not in ("do", "if"):
        return name
    return re.sub(r"\W", "_", f"loop_{name}", flags=re.ASCII)


@dataclass
class Constants:
    """
    Attributes:
        flash_apart: what is in flash is read by instructions of its own, as on an AVR.
        flash_far: more than 64 KiB of it, of which the first are for what is not ``far``.
    """

    names: Names
    flash_apart: bool = False
    flash_far: bool = False
    tables: dict[str, Table] = field(default_factory=dict)

    def add(
        self, name: str, kind: str, type_: str, values: IntArray, about: str, in_flash: bool = True,
        align: int = 1, far: bool = False,
    ) -> Array:  # fmt: skip
        """Return an array that holds ``values``; the same array for the same name, kind and values.

        Args:
            far: all that reads it can do so wherever in flash it is.
        """
        apart, flat = self.flash_apart and in_flash, np.asarray(values).reshape(-1)
        far = far and apart and self.flash_far
        if apart and not far and (size := flat.size * bytes_of(type_)) > LARGEST_ON_AVR:
            raise ThimbleError(
                f"{name} has {size:,} B of constants in one piece, and an array on an AVR has at "
                f"most {LARGEST_ON_AVR:,}: try fewer channels or another board"
            )
        if far and len(flat) % 2:
            flat = np.append(flat, 0)  # code comes behind, in words
        found = self._name(name, kind, far)
        held = self.tables.get(found)
        if held and not (held.type == type_ and np.array_equal(held.values, flat)):
            # another kernel of the operator has its constants in another order
            digest = hashlib.sha256(flat.tobytes()).hexdigest()[:8]
            found = self._name(name, f"{kind}_{digest}", far)
        if found not in self.tables:
            placed = ("NN_FAR" if far else "NN_FLASH") if apart else ""
            self.tables[found] = Table(found, type_, flat, comment(about), in_flash, align, placed)
        accessor = f"({type_})nn_flash{8 * bytes_of(type_)}" if apart else ""
        return Array(found, accessor, far)

    def _name(self, name: str, kind: str, far: bool) -> str:
        found = self.names(name, kind)
        return f"{FAR}{found.removeprefix('nn_')}" if far else found


def bytes_of(type_: str) -> int:
    """4 of ``int32_t``."""
    return np.dtype(type_.removesuffix("_t")).itemsize


def c_bits(values: Iterable[int], signed: bool = False) -> int:
    """Return the least of 8, 16, 32 and 64 bits that holds all ``values``."""
    held = [0, *values]
    most = max(max(held), -1 - min(held)) << 1 if signed else max(held)
    return next(bits for bits in (8, 16, 32, 64) if most < 1 << bits)


def narrowest(values: IntArray) -> str:
    """Return the narrowest signed C type that holds all of ``values``."""
    return f"int{c_bits(values.reshape(-1).tolist(), signed=True)}_t"


def stored(known: list[T], more: list[T]) -> int:
    """Return where in ``known`` they begin; append them if they are not there yet."""
    size = len(more)
    for at in range(len(known) - size + 1):
        if known[at : at + size] == more:
            return at
    known.extend(more)
    return len(known) - size


def wrapped(values: IntArray) -> IntArray:
    """Return them as 32 bits hold them: sums that wrap around come out right all the same."""
    return (values + (1 << 31)) % (1 << 32) - (1 << 31)
