"""Python looks for garbage as objects are made. What imports and Hydra make stays, and looking at
it again and again is a sixth of the time of a run that finds everything in its cache: run.py begins
without.
"""

from __future__ import annotations

import gc


def collect() -> None:
    """Collect garbage from now on, not among what is there already, and seldom: a plan is made of
    millions of objects that stay."""
    if not gc.isenabled():
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        gc.enable()
