"""Check whether listening and computing keep up with the sound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.frontends.frontend import RATE_HZ


def realtime(found: Mapping[str, Any], sounds: npt.NDArray[np.int16] | None) -> dict[str, Any]:
    """Return how long a sound lasts, and, where a target counts ``compute_us``,
    ``realtime_factor``, the CPU's share of that, front end included, and the energy of a second of
    sound; nothing without ``sounds``.

    Args:
        sounds: (n, samples), or None.
    """
    if sounds is None:
        return {}
    sound_us = sounds.shape[1] / RATE_HZ * 1e6
    of = {"realtime_factor": ("compute_us", 1), "energy_second_uj": ("energy_uj", 1_000_000)}
    shares = {n: found[key] * by / sound_us for n, (key, by) in of.items() if key in found}
    return {"sound_us": sound_us, **shares}
