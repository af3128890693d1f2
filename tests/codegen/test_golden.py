"""Generated C is what is kept of it, and plain."""

from __future__ import annotations

import re

import pytest

from tests.codegen.golden import FOLDER, NAMES, generated


@pytest.mark.parametrize("name", NAMES)
def test_golden_files(name: str) -> None:
    for file, content in generated(name).items():
        assert content == (FOLDER / name / file).read_text(), (
            f"{file} of {name} changed; if that is meant: python -m tests.codegen.golden"
        )


@pytest.mark.parametrize("name", ["int8/golden/ordinary", "int8/golden/channel_loop"])
def test_c_is_plain(name: str) -> None:
    """C99 but for attributes and assertions: no heap, no files, nothing of this machine; real
    numbers only in the header's own functions, for whoever calls them."""
    for file, content in generated(name).items():
        assert not re.search(r"malloc|stdio|\bdouble\b|/tmp|typeof|__builtin", content)
        assert file == "model.h" or not re.search(r"\bfloat\b", content)
        assert max(map(len, content.splitlines())) < 260
        assert "\t" not in content and not re.search(r" +$", content, re.MULTILINE)
        assert not re.search(r"\n\n\n", content)
