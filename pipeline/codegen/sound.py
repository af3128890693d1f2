"""C of a front end: ``nn_listen`` takes samples and feeds the network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.codegen.render import render
from pipeline.errors import ThimbleError
from pipeline.frames import RAW_ZERO, integers
from pipeline.frontends.frontend import Frontend
from pipeline.graph.tensor import Tensor


@dataclass(frozen=True)
class Sound:
    """A front end before a network.

    Attributes:
        flips: the network takes its features less 128.
        stream: a network with states takes as much of a sound that goes on as its input is long.
    """

    frontend: Frontend
    flips: bool
    stream: bool = False

    @property
    def samples(self) -> int:
        """Return the samples of a call."""
        return self.frontend.samples - self.frontend.early * self.stream

    @property
    def begin(self) -> list[str]:
        """C: a sound begins."""
        return ["memset(&nn_ear, 0, sizeof nn_ear);", *[self.frontend.silence] * self.stream]

    @property
    def rewind(self) -> list[str]:
        """C: the samples of the next call come."""
        return ["nn_ear.bytes = 0;"] if self.stream else self.begin

    @classmethod
    def of(cls, frontend: Frontend, image: Tensor, stream: bool = False) -> Sound:
        """Raises ThimbleError when the network's input is no 8 bits of the front end's shape, as
        they are or less 128."""
        frontend.check(image.shape)
        off = np.arange(256) - integers(image)
        if image.dtype.bits != 8 or len(set(off.tolist())) != 1 or off[0] not in (0, RAW_ZERO):
            raise ThimbleError(
                f"{image.name}: a front end gives 0…255, and the network stores other integers for "
                f"them ({image.dtype}, model.input_range): leave model.input_range out"
            )
        return cls(frontend, bool(off[0]), stream)

    def source(self, count: str) -> str:
        """``count``: the C type of a number of bytes in one call."""
        return render(self.frontend.template, count=count, flips=self.flips, **self.frontend.values)
