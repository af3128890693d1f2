"""What to say of an operator that an importer does not know."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

DOCS = "docs/importing.md"
NEAREST = 3

LABELS = "end the network with what it is taken of: the label is the same"
INSTEAD = {
    "argmax": LABELS,
    "topk": LABELS,
    "logsoftmax": "end the network with its logits: the label is the same",
}
"""What to do instead, by name in small letters only."""


def unsupported(name: str, known: Iterable[str]) -> str:
    """``not supported``, and what to do instead; or the supported operators of a similar name, and
    where all of them are."""
    if hint := INSTEAD.get(name.lower().replace("_", "")):
        return f"not supported; {hint}"
    names = {each.lower(): each for each in known}
    near = [names[each] for each in difflib.get_close_matches(name.lower(), names, NEAREST)]
    said = f" (of a similar name: {', '.join(near)})" if near else ""
    return f"not supported{said}; {DOCS} lists what is"
