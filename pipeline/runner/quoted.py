"""Quotes command-line values for Hydra, whose grammar takes only part of ASCII without quotes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hydra.core.override_parser.types import Quote, QuotedString

from pipeline.runner.replay import KEY

OF_PATHS = re.compile(
    r"\+*(model\.(path|state_dict)|data\.path|target\.port|cache\.remote|hydra\.(run|sweep)\.dir)"
)
PLAIN = re.compile(r"[\w/\\+.$%*@?|: -]*", re.ASCII)
"""Text that Hydra takes without quotes."""
WITHIN = re.compile(r"[\[{].*|(choice|shuffle|sort|tag|str|glob)\(.*\)")
"""Values with parts: lists, dictionaries, and Hydra's functions."""
PARTS = r"""('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[%s])"""
"""Text that is quoted already, and what stands between the parts of a value."""


def quoted(words: Sequence[str]) -> list[str]:
    """Return ``words`` with quotes around values that Hydra cannot read, one by one in sweeps."""
    return [_quoted(word) for word in words]


def _quoted(word: str) -> str:
    key, equals, value = word.partition("=")
    within, path = WITHIN.fullmatch(value), OF_PATHS.fullmatch(key)
    if not equals or word.startswith(("-", KEY)) or (value.isascii() and (within or not path)):
        return word
    parts = re.split(PARTS % (r",\[\]{}():" if within else ","), value)
    parts[::2] = [_part(each, path is not None) for each in parts[::2]]
    return f"{key}={''.join(parts)}"


def _part(text: str, path: bool) -> str:
    if PLAIN.fullmatch(text) if path else text.isascii():
        return text
    return QuotedString(text, Quote.single).with_quotes()
