"""Thimble where it is installed: the command ``thimble`` and, from Python, ``Predictor``.

In a wheel this is ``thimble/__init__.py``, beside run.py and the folders of the source tree.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from pipeline.targets.predictor import Predictor  # noqa: E402  it is found now

__all__ = ["Predictor", "main"]


def main() -> None:
    """Do what ``python run.py`` does in the source tree."""
    runpy.run_path(str(HERE / "run.py"), run_name="__main__")
