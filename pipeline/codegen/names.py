"""The names of boards, graphs, operators and tensors on their way into C. They come from files, and
other people's files may name things ``*/`` or worse: nothing else puts a name into C."""

from __future__ import annotations

import re

LONGEST_COMMENT = 200


def comment(text: str) -> str:
    """``text`` as it may stand within a C comment: one line of printable ASCII that neither ends
    it, nor begins another, nor continues a line."""
    plain = "".join(map(_plain, text)).replace("\\", "/")
    if len(plain) > LONGEST_COMMENT:
        plain = f"{plain[: LONGEST_COMMENT - 3]}..."
    return re.sub(r"(?<=\*)(?=/)|(?<=/)(?=\*)|(?<=\?)(?=\?)", " ", plain)


def _plain(character: str) -> str:
    if " " <= character <= "~":
        return character
    return " " if character.isspace() else f"<U+{ord(character):04X}>"
