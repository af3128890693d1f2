"""Python looks for garbage as objects are made. What imports and Hydra make stays, and looking at
it again and again is a sixth of the time of a run that finds everything in its cache: run.py begins
without.
"""

from __future__ import annotations

import gc


def collect() -> None:
    """Collect garbage from now on, and not among what is there already."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
