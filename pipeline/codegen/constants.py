"""Constant arrays of the generated file: weights as the kernels walk them, and their tables."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field

import numpy as np

from pipeline.codegen.names import comment
from pipeline.codegen.render import rows
from pipeline.graph.tensor import IntArray

LONGEST = 48
OF_WINDOWS = ("nn_weights_", "nn_bias_", "nn_channels_")
"""What the names of the constants of 4-bit kernels begin with."""
LONGEST_LIST = 1 << 16
"""Bytes that a person may still want to read as numbers."""
TEXT_BYTES = 24


@dataclass(frozen=True)
class Array:
    """A table as kernels read it; its text is its C name.

    Attributes:
        accessor: the macro of nn_int8.h that reads an element where flash has addresses of its own.
    """

    name: str
    accessor: str = ""

    def __str__(self) -> str:
        return self.name

    def read(self, index: str, pointer: str = "") -> str:
        """C of an element: of the table, or ``index`` after where ``pointer`` points into it."""
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
        qualifier = "const " if self.in_flash else ""
        if self.align > 1:
            qualifier += f"__attribute__((aligned({self.align}))) "
        length = "" if self.is_text else len(self.values)
        place = f" {self.placed}" if self.placed else ""
        return f"static {qualifier}{self.type} {self.name}[{length}]{place} ={self._initializer};"

    def holds(self, type_: str, values: IntArray) -> bool:
        """Whether these are its values."""
        return self.type == type_ and np.array_equal(self.values, values)

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
    """C identifiers, each given once."""

    given: dict[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def __call__(self, name: str, kind: str = "") -> str:
        """The identifier of ``name``; ``kind`` tells names apart that are of different things."""
        key = f"{name}\0{kind}"
        if key not in self.given:
            self.given[key] = self.fresh(name, kind)
        return self.given[key]

    def fresh(self, name: str, kind: str = "") -> str:
        """An identifier like ``name`` that is not given yet."""
        plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")[:LONGEST].rstrip("_")
        stem = "_".join(part for part in ("nn", plain.lower(), kind) if part)
        if stem.startswith(OF_WINDOWS):
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
    """

    names: Names
    flash_apart: bool = False
    tables: dict[str, Table] = field(default_factory=dict)

    def add(
        self,
        name: str,
        kind: str,
        type_: str,
        values: IntArray,
        about: str,
        in_flash: bool = True,
        align: int = 1,
    ) -> Array:
        """An array that holds ``values``; the same array for the same name, kind and values."""
        apart, flat = self.flash_apart and in_flash, np.asarray(values).reshape(-1)
        found = self.names(name, kind)
        if found in self.tables and not self.tables[found].holds(type_, flat):
            # another kernel of the operator has its constants in another order
            found = self.names(name, f"{kind}_{hashlib.sha256(flat.tobytes()).hexdigest()[:8]}")
        if found not in self.tables:
            placed = "NN_FLASH" if apart else ""
            self.tables[found] = Table(found, type_, flat, comment(about), in_flash, align, placed)
        return Array(found, f"nn_flash_{short(type_)}" if apart else "")


def short(type_: str) -> str:
    """``i8`` of ``int8_t``."""
    return type_.removesuffix("_t").replace("uint", "u").replace("int", "i")


def narrowest(values: IntArray) -> str:
    """The narrowest signed C type that holds all of ``values``."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    for bits in (8, 16, 32):
        if -(1 << (bits - 1)) <= low and high < 1 << (bits - 1):
            return f"int{bits}_t"
    return "int64_t"
