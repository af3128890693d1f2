"""Partial execution along channels: the loops of ``search.moves.channels``, always."""

from dataclasses import dataclass
from typing import ClassVar

from pipeline.errors import ThimbleError
from pipeline.search.moves.channels import ByChannels
from pipeline.strategies.base import ANY, Strategy


@dataclass(frozen=True)
class Partial(ByChannels, Strategy):
    """``objective``: the same plan for each."""

    name: ClassVar[str] = "partial"
    quick_plan_macs: ClassVar[int] = ANY

    def __post_init__(self) -> None:
        super().__post_init__()
        self.choose("search", ("pex", "exact"))
        self.choose("accumulator_bits", (8, 16, 32))
        if not isinstance(self.channels, int) or self.channels < 0:
            raise ThimbleError(
                f"strategy.channels={self.channels}: how many channels a loop computes at once, or "
                "0 for as many as don't raise the peak"
            )
