"""Kernels for cores with the DSP extension, and their prices on each."""

from __future__ import annotations

from typing import ClassVar

from pipeline.kernels.cortex_m.costs import CODE_BYTES, costs
from pipeline.kernels.fast import Fast
from pipeline.kernels.work import Counts


class Fitted(Fast):
    """
    Attributes:
        priced: as which kernel of the set it is priced, by its word; "": by its own.
    """

    core = "cortex_m"
    priced: ClassVar[str] = ""

    def __init__(self, cpu: str = "cortex-m4") -> None:
        self.cpu = cpu
        self.code_bytes = CODE_BYTES.get(self.word, 0)

    def prices(self) -> Counts:
        """Those that were fitted for ``cpu``."""
        return costs(self.cpu, self.priced or self.word)
