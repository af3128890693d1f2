"""The names of boards, graphs, operators and tensors on their way into C. They come from files, and
other people's files may name things ``*/`` or worse: nothing else puts a name into C."""

from __future__ import annotations

import hashlib
import re

LONGEST_COMMENT = 200
LONGEST_IDENTIFIER = 60
KEPT = 40
"""Characters of a name that stay readable in an identifier that is not the name itself."""

OURS = re.compile(r"_line$|_pixel$|__|_$|_[0-9a-f]{12}$")
"""Parts that identifiers made from another name may have."""


def comment(text: str) -> str:
    """``text`` as it may stand within a C comment: one line of printable ASCII that neither ends
    it, nor begins another, nor continues a line."""
    plain = "".join(map(_plain, text)).replace("\\", "/")
    if len(plain) > LONGEST_COMMENT:
        plain = f"{plain[: LONGEST_COMMENT - 3]}..."
    return re.sub(r"(?<=\*)(?=/)|(?<=/)(?=\*)|(?<=\?)(?=\?)", " ", plain)


def identifier(name: str) -> str:
    """The part of a C identifier that stands for ``name``, after a prefix such as ``run_``.

    Different names have different ones: a name that is none as it is, or could be taken for one
    that was made, ends in 12 digits of its hash.
    """
    if re.fullmatch(rf"\w{{1,{LONGEST_IDENTIFIER}}}", name, re.ASCII) and not OURS.search(name):
        return name
    like = re.sub(r"\W+|__+", "_", name, flags=re.ASCII)[:KEPT].strip("_")
    digits = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:12]
    return f"{like}_{digits}" if like else digits


def _plain(character: str) -> str:
    if " " <= character <= "~":
        return character
    return " " if character.isspace() else f"<U+{ord(character):04X}>"
