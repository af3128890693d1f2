"""Lets ``dvc exp run -S GROUP=OPTION`` compose the config: DVC imports it, a plugin of Hydra."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pipeline.runner import schema

schema.register()
