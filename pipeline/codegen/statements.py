"""Calls as what they are, until all are known: one becomes a line of C, many a tape."""

from dataclasses import dataclass
from typing import NamedTuple

from pipeline.codegen.c.values import Value

PLACE = "{}"
"""Placeholder in an argument's text for its number."""


class Argument(NamedTuple):
    """``text`` is C, with at most one ``PLACE``, where ``value`` goes."""

    text: str
    value: Value = Value()

    def __str__(self) -> str:
        return self.text.replace(PLACE, str(self.value))


@dataclass(frozen=True)
class Call:
    """
    Attributes:
        comment: of the line.
        resumes: the number of the place where the program goes on behind it, if it waits there for
            the piece of the input that the arguments say: no function is called.
    """

    function: str
    arguments: tuple[Argument, ...]
    comment: str = ""
    resumes: int = 0

    def __str__(self) -> str:
        number = (str(self.resumes),) if self.resumes else ()
        arguments = ", ".join((*number, *map(str, self.arguments)))
        return f"{self.function}({arguments});{f' /* {self.comment} */' if self.comment else ''}"

    @property
    def known(self) -> bool:
        """Check whether its arguments depend on no loop around it."""
        return all(argument.value.known for argument in self.arguments)


@dataclass(frozen=True)
class Line:
    """One of the body of nn_invoke: ``depth`` loops are around it."""

    depth: int
    content: Call | str

    def __str__(self) -> str:
        return f"{'    ' * (self.depth + 1)}{self.content}"
