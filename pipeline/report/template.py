"""Provide what all pages share: filters that write numbers, the palette, data for scripts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from pipeline import words
from pipeline.report import palette

ASSETS = Path(__file__).parent / "assets"


def environment() -> jinja2.Environment:
    """Return the environment of all pages: asking for a name that was not given is an error."""
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(ASSETS),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "number": words.number,
        "si": words.si,
        "time": words.time,
        "called": words.called,
        "counts": words.counts,
        "valued": words.valued,
        "memory": words.memory,
        "broken": broken,
        "part": lambda value, whole: f"{100 * value / whole:.3f}%" if whole else "0%",
    }
    found.globals |= {"colours": palette.css(), "kinds": palette.MEMORY, "engines": palette.TIME,
                      "passes": words.PASSES}  # fmt: skip
    return found


def broken(name: str) -> Markup:
    """Return a name that may go on in the next line after each of its parts."""
    return Markup(re.sub(r"(?<=[._=/])(?=.)", "<wbr>", str(escape(name))))


def embedded(content: Mapping[str, Any]) -> str:
    """Return JSON that may stand in a page."""
    return json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
