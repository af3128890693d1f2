"""How long a card lasts when inferences follow each other without end.

A cell endures some cycles; wear levelling spreads writes over all cells. Half of the cells have
failed when half of ``capacity * endurance_cycles`` is written, the first one when
``capacity * first_failure_cycles`` is (SwapNN, section 5.4).
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.hardware import Card

DAYS_A_YEAR = 365.0
US_A_DAY = 86_400e6


@dataclass(frozen=True)
class Wear:
    """``bytes_a_day`` reach the card's cells. Years are None where nothing is written, or where
    nobody knows the cycles."""

    bytes_a_day: float
    years_first_failure: float | None
    years_half: float | None


def wear(written_bytes: float, makespan_us: float, card: Card) -> Wear:
    """
    Args:
        written_bytes: that the cells store in ``makespan_us``, amplification included.
    """
    a_day = written_bytes * US_A_DAY / makespan_us if makespan_us else 0.0
    return Wear(
        a_day,
        years(a_day, card.bytes * card.first_failure_cycles),
        years(a_day, half_bytes(card.bytes, card.endurance_cycles)),
    )


def half_bytes(capacity_bytes: float, endurance_cycles: float) -> float:
    """What is written until half of the cells have failed."""
    return 0.5 * capacity_bytes * endurance_cycles


def years(bytes_a_day: float, endured_bytes: float) -> float | None:
    """Until ``endured_bytes`` are written."""
    if not bytes_a_day or not endured_bytes:
        return None
    return endured_bytes / bytes_a_day / DAYS_A_YEAR
