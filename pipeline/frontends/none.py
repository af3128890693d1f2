"""No front end: the data set's images are the network's input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.artifacts import Arrays
from pipeline.errors import ThimbleError


@dataclass(frozen=True)
class NoFrontend:
    """The network takes the data as it is: no sounds."""

    state_bytes: ClassVar[int] = 0

    def applied(self, data: Arrays) -> Arrays:
        """``data``; raises ThimbleError where it is sounds."""
        if any(data[f"{part}_images"].ndim == 2 for part in ("train", "test")):
            raise ThimbleError(
                "the data set has sounds, which a network takes as spectrograms: choose "
                "frontend=square_wave, mfcc or microfrontend"
            )
        return data
