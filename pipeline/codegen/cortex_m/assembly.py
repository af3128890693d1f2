"""Instructions in the order in which a core issues them, as macros of ``nn_dsp.h``: the compiler
chooses their registers."""

import re
from collections.abc import Iterable, Mapping, Sequence

REACH = 255
"""Bytes that a load or a store can move a pointer on by."""

HALVES = {"smlad": "PAIR", "smlabt": "LOW_HIGH", "smlatb": "HIGH_LOW"}
"""Of two words, which an instruction multiplies."""


def load(to: str, pointer: str, place: int) -> str:
    """Return the word so many bytes from a pointer."""
    return f"NN_LOAD({to}, {pointer}, {place});"


def add(total: str, a: str, b: str, code: str = "smlad", *, first: bool = False) -> str:
    """Products of two words' halves, added to a sum, or its ``first``, both."""
    return f"NN_{'BOTH' if first else HALVES[code]}({total}, {a}, {b});"


def block(
    turn: Sequence[str], words: Iterable[str], indent: int, *, rounds: int | str = 1,
    moves: Mapping[str, tuple[int, int]] = {}, rest: Sequence[str] = (), stop: str = "",
) -> str:  # fmt: skip
    """C of ``turn``, ``rounds`` times, and of the ``rest``.

    Args:
        words: variables that no other code has, if they are used.
        moves: how many elements a round moves pointers on by, and bytes of each; the last load of
            a pointer does so if it is where that is.
        stop: a word that has where the first one ends, if no register has that meanwhile.
    """
    before, turn, ends = list[str](), list(turn), "!nn_again()"
    if rounds != 1:
        first, (by, _) = next(iter(moves.items()))
        before = [f"const void *const end = {first} + {rounds} * {by};"]
        ends = f"(uint32_t)(uintptr_t){first} == {stop}" if stop else f"{first} == end"
    for pointer, (step, size) in moves.items():
        last = max((n for n, line in enumerate(turn) if f", {pointer}, " in line), default=0)
        here = f", {pointer}, 0);"
        if turn[last].startswith("NN_LOAD") and turn[last].endswith(here) and step * size <= REACH:
            moved = turn[last].replace(here, f", {pointer}, {step * size});")
            turn[last] = moved.replace("NN_LOAD", "NN_NEXT")
        else:
            turn.append(f"{pointer} += {step};")
    turn += [f"NN_FETCH({stop}, end);"] * (rounds != 1 and bool(stop))
    lines = ["do {", *turn, f"}} while (!({ends}));", *rest] if moves else turn
    used = set(re.findall(r"\w+", " ".join(lines)))
    if own := ", ".join(word for word in words if word in used):
        before.insert(0, f"uint32_t {own};")
    lines = [*before, "NN_ORDERED();", *lines, "NN_ORDERED();"]
    s = " " * indent
    return "".join([f"{s}{{\n", *(f"{s}    {line}\n" for line in lines), f"{s}}}\n"])
