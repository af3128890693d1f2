"""Energy by state: volts times the currents of what is busy and of what waits."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.hardware import Hardware
from pipeline.timing.states import States


@dataclass(frozen=True)
class Energy:
    """Microjoules, by the states of ``States``; 0 in all where the board's currents are unknown."""

    compute_uj: float
    io_uj: float
    both_uj: float
    idle_uj: float

    @property
    def total_uj(self) -> float:
        return self.compute_uj + self.io_uj + self.both_uj + self.idle_uj


def energy(states: States, hardware: Hardware) -> Energy:
    """The core draws ``power.active_ma`` or ``idle_ma``, the card ``read_ma``, ``write_ma`` or its
    ``idle_ma``; reads and writes share the card's states in proportion to their times."""
    power, card = hardware.power, hardware.card
    if not power.active_ma:
        return Energy(0.0, 0.0, 0.0, 0.0)
    moving = states.read_us + states.write_us
    busy_ma = (
        (card.read_ma * states.read_us + card.write_ma * states.write_us) / moving
        if moving
        else card.idle_ma
    )
    uj = power.supply_volt / 1e3  # of a milliampere for a microsecond
    return Energy(
        compute_uj=uj * states.compute_us * (power.active_ma + card.idle_ma),
        io_uj=uj * states.io_us * (power.idle_ma + busy_ma),
        both_uj=uj * states.both_us * (power.active_ma + busy_ma),
        idle_uj=uj * states.idle_us * (power.idle_ma + card.idle_ma),
    )
