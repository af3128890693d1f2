"""``make deps``: bring params.yaml up to date: the default composition, resolved."""

from __future__ import annotations

from pathlib import Path

from hydra import compose, initialize_config_dir

from pipeline.artifacts import write_text
from pipeline.home import ROOT
from pipeline.runner import schema
from pipeline.runner.job import resolved
from pipeline.runner.workspace import params_text


def default_params(root: Path) -> str:
    """The text that params.yaml should have."""
    schema.register()
    with initialize_config_dir(str(root / "conf"), version_base="1.3"):
        return params_text(resolved(compose("config")))


if __name__ == "__main__":
    write_text(ROOT / "params.yaml", default_params(ROOT))
