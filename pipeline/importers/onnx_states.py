"""States of an ONNX network: inputs that are an output of the call before (``model.state``)."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache

from pipeline.errors import ThimbleError

NONE = ("none",)
"""``model.state`` of a network all of whose inputs are fed."""
READ = re.compile(r"[_.](in|prev|old)$|[_.]?0$")
"""Ends the name of what a call reads, where ``MADE`` ends that of what it makes of it: h and hn,
h0 and hn, state and stateN, c_in and c_out."""
MADE = re.compile(r"[_.](out|next|new)$|[_.]?[n1]$")

Extents = Mapping[str, Sequence[int]]
"""Shapes by name; 0 is an extent that the file does not say."""


def states(
    asked: Sequence[str], inputs: Extents, outputs: Extents, every: Mapping[str, str]
) -> dict[str, str]:
    """Find what a call reads, and what that is for the next: an input to an output.

    Args:
        asked: ``model.state``; empty: what names and shapes say.
        every: all tensors that may be asked for, by the name that messages have.

    Raises:
        ThimbleError: pairs that mean nothing.
    """
    if not asked:
        return _alike(inputs, outputs)
    found = dict[str, str]()
    for pair in () if tuple(asked) == NONE else asked:
        said, colons = f"model.state=[{pair}]", [n for n, c in enumerate(pair) if c == ":"]
        splits = [(pair[:n].strip(), pair[n + 1 :].strip()) for n in colons]  # names have some, too
        known = [(read, made) for read, made in splits if read in inputs and made in every]
        read, made = next(iter(known or splits), ("", ""))
        if not (read and made):
            raise ThimbleError(
                f"{said}: give an input and the output that it is in the next call, such as h:hn; "
                "[none] if there are none"
            )
        for name, what, there in ((read, "input", inputs), (made, "tensor", every)):
            if name not in there:
                near = get_close_matches(name, there, 3, 0.3) or list(there)[:3]
                known_ones = ", ".join(near)
                raise ThimbleError(f"{said}: there is no {what} {name}; there are {known_ones}")
        if read in found or made in found.values():
            twice = read if read in found else made
            raise ThimbleError(
                f"{said}: {twice} is in two pairs: each state has an input and an output of its own"
            )
        found[read] = made
    return _some_left(found, inputs)


def _some_left(found: dict[str, str], inputs: Extents) -> dict[str, str]:
    if found.keys() >= inputs.keys():
        raise ThimbleError(
            f"model.state: all inputs are states, {', '.join(inputs)}: one at least has to be fed"
        )
    return found


def _alike(inputs: Extents, outputs: Extents) -> dict[str, str]:
    """Pair inputs and outputs of like names and shapes, where each has one other, and an input and
    an output are left that have none."""
    others = {
        read: [made for made in outputs if _pair(read, made, inputs[read], outputs[made])]
        for read in inputs
    }
    taken = [made for each in others.values() for made in each]
    found = {read: each[0] for read, each in others.items()
             if len(each) == 1 and taken.count(each[0]) == 1}  # fmt: skip
    if not found or len(found) == len(inputs) or len(found) == len(outputs):
        return {}
    _say(
        "state between calls, by names and shapes: "
        f"model.state=[{','.join(':'.join(pair) for pair in found.items())}]; "
        "model.state=[none] has all inputs fed"
    )
    return found


def _pair(read: str, made: str, before: Sequence[int], after: Sequence[int]) -> bool:
    pairs = zip(before, after, strict=False)
    fit = not after or (len(before) == len(after) and all(n == m or 0 in (n, m) for n, m in pairs))
    old, new = (re.sub(r":\d+$", "", name).lower() for name in (read, made))
    stem = MADE.sub("", new)
    return fit and "" != stem != new and stem in (old, READ.sub("", old))


@cache
def _say(line: str) -> None:
    """Print it once, however often the file is read."""
    print(line, file=sys.stderr, flush=True)
