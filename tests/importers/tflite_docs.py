"""Writes the .tflite importer's operators into the documentation: ``python -m
tests.importers.tflite_docs``."""

from __future__ import annotations

from pipeline.home import ROOT
from pipeline.importers.tflite import supported

PAGE = ROOT / "docs" / "importing.md"
BEGIN = "<!-- tflite: written by python -m tests.importers.tflite_docs -->\n"
END = "<!-- tflite: end -->\n"


def table() -> str:
    """Operators that are supported alike share a row."""
    rows: dict[str, list[str]] = {}
    for name, form in supported().items():
        rows.setdefault(form, []).append(name)
    lines = [f"| {', '.join(names)} | {form} |" for form, names in rows.items()]
    return "\n".join(["| operator | supported |", "| --- | --- |", *lines]) + "\n"


def current(page: str) -> str:
    """The page with the table as it has to be."""
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}{table()}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(current(PAGE.read_text()))
