"""What to say of an operator that an importer does not know."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

DOCS = "docs/importing.md"
NEAREST = 3


def unsupported(name: str, known: Iterable[str]) -> str:
    """``not supported``, the supported operators of a similar name, and where all of them are."""
    names = {each.lower(): each for each in known}
    near = [names[each] for each in difflib.get_close_matches(name.lower(), names, NEAREST)]
    said = f" (of a similar name: {', '.join(near)})" if near else ""
    return f"not supported{said}; {DOCS} lists what is"
