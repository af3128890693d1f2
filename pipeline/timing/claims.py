"""Figures derived from those that a paper prints, by the formulas that it uses: SwapNN, section 5.

A row of an experiment (``paper:``) that has ``of``, a mapping of printed figures, is computed here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pipeline.errors import ThimbleError
from pipeline.timing.wear import half_bytes, years

GB = 1e9
GB_A_TB = 1024
"""GB in a TB of the paper: only so are its lifetimes reproduced."""


def years_first_failure(gb_a_day: float, card_gb: float, tb: float, of_gb: float) -> float | None:
    """Give years to the first failure of ``card_gb``, if ``of_gb`` endure ``tb`` before theirs."""
    return years(gb_a_day * GB, card_gb / of_gb * tb * GB_A_TB * GB)


def years_half(gb_a_day: float, card_gb: float, cycles: float) -> float | None:
    """Until half of the cells of a card have failed."""
    return years(gb_a_day * GB, half_bytes(card_gb * GB, cycles))


def energy_pct(wh: tuple[float, float], seconds: tuple[float, float]) -> float:
    """Return by how many percent the second run's energy exceeds the first's."""
    return 100 * (wh[1] / wh[0] - 1)


def time_pct(wh: tuple[float, float], seconds: tuple[float, float]) -> float:
    return 100 * (seconds[1] / seconds[0] - 1)


def power_pct(wh: tuple[float, float], seconds: tuple[float, float]) -> float:
    return 100 * (wh[1] / seconds[1] / (wh[0] / seconds[0]) - 1)


def board_watt(wh: tuple[float, float], seconds: tuple[float, float]) -> float:
    """Return the power of the whole board, not only the chip, in the first run."""
    return wh[0] * 3600 / seconds[0]


FORMULAS: dict[str, Callable[..., float | None]] = {
    "wear_years_first_failure": years_first_failure,
    "wear_years_half": years_half,
    "energy_pct": energy_pct,
    "time_pct": time_pct,
    "power_pct": power_pct,
    "board_watt": board_watt,
}


def claim(metric: str, of: Mapping[str, Any]) -> float | None:
    """
    Raises:
        ThimbleError: for a metric that has no formula, or figures that it does not take.
    """
    try:
        return FORMULAS[metric](**of)
    except (KeyError, TypeError) as error:
        raise ThimbleError(
            f"paper: {metric} does not follow from {', '.join(of)} ({error}); there are "
            f"{', '.join(FORMULAS)}"
        ) from None
