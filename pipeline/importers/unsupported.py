"""Say of an operator that no importer knows what to do instead."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pipeline.errors import ThimbleError

DOCS = "docs/importing.md"

LABELS = "end the network with what it is taken of: the label is the same"
RECURRENT = (
    "of recurrent layers LSTM and GRU are, and convolutions over time, as docs/zoo.md's networks "
    f"for speech have them; {DOCS} lists all that is"
)
INTEGERS = (
    "of a .tflite file those of int8 are: quantize it, or give a network of ONNX or PyTorch, which "
    "is quantized here"
)
DYNAMIC = (
    "scales are not found at run time here; quantize with fixed ones (onnxruntime's "
    "quantize_static), or give the float network, which is quantized here"
)
RUN_TIME = (
    "the network has to be the same for every input: export it with what decides or counts fixed"
)
ENDS = ("topk", "customoperator", "nonmaxsuppression")
"""Begin the names of operators before which a network may as well end."""
INSTEAD = {
    "topk": LABELS,
    **dict.fromkeys(("rnn", "rnntanh", "rnnrelu"), RECURRENT),
    **dict.fromkeys(
        (f"{kind}directionalsequence{of}" for kind, of in (("uni", "rnn"), ("bi", "rnn"),
                                                           ("bi", "lstm"))), RECURRENT,
    ),
    **dict.fromkeys(("unidirectionalsequencelstm", "svdf"), INTEGERS),
    **dict.fromkeys(("dynamicquantizelstm", "dynamicquantizematmul"), DYNAMIC),
    **dict.fromkeys(("if", "loop", "scan", "while", "cond", "whileloop"), RUN_TIME),
}  # fmt: skip
"""Advice on what to do instead, by name in small letters only."""


def instead(name: str) -> str:
    """Look up what to do instead of the operator or module ``name``; "" where nothing is known."""
    return INSTEAD.get(_plain(name), "")


def unsupported(name: str) -> str:
    """Say ``not supported``, and what to do instead, or where all that is supported is listed."""
    return f"not supported; {instead(name) or f'{DOCS} lists what is'}"


@dataclass
class Missing:
    """Collect what a network has that is not supported, operators or their options.

    Attributes:
        made: what this would make, and what is made of what is lost.
        lost: those of which nothing is known; what reads them is not judged.
    """

    made: set[Any] = field(default_factory=set)
    lost: set[Any] = field(default_factory=set)
    _found: dict[tuple[str, str], ThimbleError] = field(default_factory=dict)
    _before: dict[str, None] = field(default_factory=dict)

    def add(self, name: str, place: str, error: ThimbleError, before: Iterable[str] = ()) -> None:
        """Note that ``name`` at ``place`` is refused by ``error``, which begins with the place; it
        reads activations ``before`` it."""
        self._found.setdefault((name, place.removesuffix(f", {name}")), error)
        self._before |= dict.fromkeys(before)

    def checked(self) -> None:
        """Refuse a network for all that was found."""
        if not self._found:
            return
        before = ",".join(self._before)
        alike: dict[tuple[str, str], list[str]] = {}
        for (name, place), error in self._found.items():
            known = not str(error).endswith(unsupported(name))
            reason = f": {str(error).partition(': ')[2]}" if known else ""
            alike.setdefault((name, reason), []).append(place)
        ends = all(_plain(name).startswith(ENDS) for name, _ in alike)
        cut = f"; model.outputs=[{before}] ends it before that" if before and ends else ""
        times = {key: f"{len(all_)} times, first " for key, all_ in alike.items() if all_[1:]}
        if len(alike) == 1:
            count = "".join(f" ({each.partition(',')[0]})" for each in times.values())
            raise ThimbleError(f"{next(iter(self._found.values()))}{count}{cut}")
        each = (
            f"{key[0]} ({times.get(key, '')}{places[0]}{key[1]})" for key, places in alike.items()
        )
        known_ways = filter(None, (instead(name) for name, _ in alike))
        advice = "; ".join(dict.fromkeys([*known_ways, f"{DOCS} lists what is"]))
        raise ThimbleError(f"operators that are not supported: {', '.join(each)}; {advice}{cut}")


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace(" ", "")
