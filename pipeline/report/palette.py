"""One meaning for each colour, in every page, picture and on the terminal, on light and on dark."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Colour:
    """``light`` and ``dark`` are for pages of that background, ``light`` for terminals, too, which
    don't say which they have; ``means`` is what a legend says."""

    light: str
    dark: str
    means: str


PAPER = Colour("#ffffff", "#14191e", "background")
PANEL = Colour("#f3f6f8", "#1d242b", "background of tables and of empty memory")
LINE = Colour("#d5dee3", "#38434c", "lines")
INK = Colour("#1d2a33", "#e6edf2", "text")
QUIET = Colour("#536370", "#a3b1bb", "text that explains")

MEMORY = {
    "tensor": Colour("#2a7f9e", "#3d9dc0", "activations"),
    "state": Colour("#6b4fa0", "#a690dc", "state, kept from call to call"),
    "sums": Colour("#0f7a5a", "#2fb58f", "sums under way"),
    "weights": Colour("#5a8f2a", "#84b84a", "weights"),
    "scratch": Colour("#a87b0a", "#dcb23c", "scratch of a kernel"),
    "stack": Colour("#8a5a44", "#b0836a", "stack"),
    "statics": Colour("#7d8994", "#7f8c98", "other static data"),
    "code": Colour("#3c4855", "#cdd6de", "program code"),
}
"""Colours of bytes, by what they are for."""

TIME = {
    "compute": Colour("#3f51b5", "#7c8cf0", "computing"),
    "read": Colour("#cc5f14", "#f08a3c", "reading from the card"),
    "write": Colour("#8e3fa8", "#c77fe0", "writing to the card"),
}
"""Colours of what an engine does; nothing is drawn where it does nothing."""

PEAK = Colour("#c2163e", "#ff6b7d", "the peak; what does not fit")
PLACES = {"paper": PAPER, "panel": PANEL, "line": LINE, "ink": INK, "quiet": QUIET, "peak": PEAK}

ALL = {**PLACES, **MEMORY, **TIME}

SERIES = ("tensor", "scratch", "write", "weights", "compute", "stack")
"""Colours of plots that compare things that have no colour of their own, in this order."""


def css() -> str:
    """Return the colours as custom properties: light, dark where that is asked for, light on paper;
    and a class for each, which fills."""
    light = "".join(f"--{name}:{colour.light};" for name, colour in ALL.items())
    dark = "".join(f"--{name}:{colour.dark};" for name, colour in ALL.items())
    fills = "".join(f".{name}{{background:var(--{name})}}" for name in (*MEMORY, *TIME, "peak"))
    return (
        f":root{{color-scheme:light dark;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
        f"{fills}\n"
    )
