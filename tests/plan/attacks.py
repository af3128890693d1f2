"""All hand-written attacks: those of every ``adversarial_*.py`` beside this file."""

from __future__ import annotations

import importlib
from pathlib import Path

from tests.plan.adversarial import ATTACKS

__all__ = ["ATTACKS"]

for module in sorted(Path(__file__).parent.glob("adversarial_*.py")):
    importlib.import_module(f"{__package__}.{module.stem}")
