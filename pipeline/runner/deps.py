"""``make deps``: bring params.yaml up to date: the default composition, resolved."""

from __future__ import annotations

from pathlib import Path

from pipeline.artifacts import write_text
from pipeline.home import ROOT
from pipeline.runner.job import resolved
from pipeline.runner.schema import composed
from pipeline.runner.workspace import params, params_text


def default_params(root: Path) -> str:
    """Return the text that params.yaml should have."""
    return params_text(params(resolved(composed(root=root))))


if __name__ == "__main__":
    write_text(ROOT / "params.yaml", default_params(ROOT))
