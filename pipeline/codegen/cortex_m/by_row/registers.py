"""Assembly in which a fixed number of registers for temporary values is handed out."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Assembly:
    """
    Attributes:
        temporaries: how many there are; named ``t0``, ``t1``, …
        lines: instructions, with operands as inline assembly writes them.
        most: how many were in use at once.
    """

    temporaries: int
    lines: list[str] = field(default_factory=list)
    most: int = 0

    def __post_init__(self) -> None:
        self._free = [f"t{n}" for n in reversed(range(self.temporaries))]

    @property
    def used(self) -> list[str]:
        return [f"t{n}" for n in range(self.most)]

    def take(self) -> str:
        assert self._free, "the registers are planned to be enough"
        name = self._free.pop()
        self.most = max(self.most, int(name[1:]) + 1)
        return name

    def give(self, name: str) -> None:
        """It is free again; names of other operands are ignored."""
        if name.startswith("t"):
            self._free.append(name)

    def __call__(self, operation: str, *operands: str) -> None:
        """An operand is a register's name, or begins with what no name begins with: #, [ or a
        shift."""
        self.lines.append(f"{operation} {', '.join(map(_operand, operands))}")

    def load(self, operation: str, to: str, base: str, offset: int) -> None:
        self.lines.append(f"{operation} %[{to}], [%[{base}], #{offset}]")


def _operand(text: str) -> str:
    return text if text[0] in "#[" or " " in text else f"%[{text}]"
