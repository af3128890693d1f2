"""What follows from the paper's printed figures."""

from __future__ import annotations

import pytest

from pipeline.errors import ThimbleError
from pipeline.timing.claims import claim

ENERGY = {"wh": [0.07, 0.10], "seconds": [178, 213]}


def test_the_papers_energy_is_time_and_power() -> None:
    """+42 % is +20 % of time at +19 % of power, on a board of 1.4 W."""
    parts = {name: claim(f"{name}_pct", ENERGY) for name in ("energy", "time", "power")}
    assert parts["energy"] == pytest.approx(42, abs=1)
    assert parts["time"] == pytest.approx(19.7, abs=0.1)
    assert parts["power"] == pytest.approx(19.4, abs=0.1)
    factors = [1 + (value or 0) / 100 for value in parts.values()]
    assert factors[0] == pytest.approx(factors[1] * factors[2])
    assert claim("board_watt", ENERGY) == pytest.approx(1.4, abs=0.02)


def test_lifetimes_scale_with_the_card() -> None:
    small = {"gb_a_day": 2.0, "card_gb": 4, "tb": 6.5, "of_gb": 4}
    large = claim("wear_years_first_failure", {**small, "card_gb": 64})
    assert large == pytest.approx(16 * (claim("wear_years_first_failure", small) or 0))
    half = {"gb_a_day": 123, "card_gb": 64 * 1.048576, "cycles": 10_000}
    assert claim("wear_years_half", half) == pytest.approx(7.47, abs=0.01)


@pytest.mark.parametrize(("metric", "of"), [("guess", {}), ("energy_pct", {"wh": [1, 2]})])
def test_what_does_not_follow_is_refused(metric: str, of: dict[str, object]) -> None:
    with pytest.raises(ThimbleError, match=f"paper: {metric} does not follow"):
        claim(metric, of)
