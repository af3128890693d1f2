"""The prefix of all names in generated C: two networks with different ones go into one program.

Templates and headers say ``nn_`` and ``NN_``, so that a person can read them. Another prefix is put
in their place at the end, word by word, in every file of a folder at once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import ThimbleError

DEFAULT = "nn"
HEADER = "model.h"
LONGEST = 24
"""Compilers tell names apart by 31 characters at least (C99, 5.2.4.1), and longer is a mistake."""

_WORD = re.compile(r"\b[A-Za-z_]\w*", re.ASCII)
_FILE = re.compile(r"\bmodel\.[ch]\b")
_ARENA = re.compile(r"^#define (\w+)_ARENA_BYTES \d+", re.MULTILINE)


@dataclass(frozen=True)
class Prefix:
    """``kws``: functions, types and variables begin with ``kws_``, macros with ``KWS_``, and the
    files are ``kws.h``, ``kws.c`` and ``kws_….h``. The default's are ``model.h`` and ``model.c``.

    Raises:
        ThimbleError: for what no C identifier can begin with, or reserved words could.
    """

    text: str = DEFAULT

    def __post_init__(self) -> None:
        plain = re.fullmatch(rf"[a-z](?:_?[a-z0-9]){{0,{LONGEST - 1}}}", self.text)
        if not plain or len(self.text) > LONGEST:
            raise ThimbleError(
                f"codegen.prefix={self.text}: every name in the C begins with it, so it has 1 to "
                f"{LONGEST} small letters, digits and single _, a letter first: try "
                f"codegen.prefix={_like(self.text)}"
            )

    @property
    def header(self) -> str:
        return self.file(HEADER)

    @property
    def source(self) -> str:
        return self.file("model.c")

    def file(self, name: str) -> str:
        """Return the name of the file that is ``name`` by default."""
        if self.text == DEFAULT:
            return name
        return re.sub(r"^(?:model(?=\.[ch]$)|nn(?=_\w+\.h$))", self.text, name)

    def word(self, word: str) -> str:
        """Return the identifier that is ``word`` by default."""
        if self.text == DEFAULT:
            return word
        if word.startswith("NN_"):
            return f"{self.text.upper()}{word[2:]}"
        return f"{self.text}{word[2:]}" if word.startswith("nn_") else word

    def files(self, files: Mapping[str, str]) -> dict[str, str]:
        """``files``, text by name, with this prefix. They include one another.

        Raises:
            ThimbleError: when some of them has a name already that it would give.
        """
        if self.text == DEFAULT:
            return dict(files)
        words = {word for text in files.values() for word in _WORD.findall(text)}
        given = {word: self.word(word) for word in sorted(words)}
        times = Counter(given.values())
        if taken := sorted(new for new, count in times.items() if count > 1):
            raise ThimbleError(
                f"codegen.prefix={self.text}: {taken[0]} is another name already; choose another"
            )

        def renamed(text: str) -> str:
            text = _WORD.sub(lambda found: given[found[0]], text)
            return _FILE.sub(lambda found: self.file(found[0]), text)

        return {self.file(name): renamed(text) for name, text in files.items()}


DEFAULTS = Prefix()


def of(folder: Path) -> Prefix:
    """Return the prefix of the generated C in ``folder``.

    Raises:
        ThimbleError: no header there says how large an arena is, or several do.
    """
    found = [m[1] for f in sorted(folder.glob("*.h")) if (m := _ARENA.search(f.read_text()))]
    if len(found) != 1:
        raise ThimbleError(
            f"{folder} has {len(found)} headers of networks, not one: run stage generate again"
        )
    return Prefix(found[0].lower())


def _like(text: str) -> str:
    """Return a prefix like ``text`` that may be one."""
    plain = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_").lstrip("0123456789_")
    return plain[:LONGEST].strip("_") or "kws"
