"""Other plans for a network swapped with a card: time, energy and wear against each other."""

from __future__ import annotations

from operator import le
from typing import TypedDict

from pipeline.hardware import Hardware
from pipeline.plan.tried import Tried
from pipeline.timing.energy import energy
from pipeline.timing.states import States
from pipeline.timing.wear import wear


class Row(TypedDict):
    """Figures of one inference. Energy is 0 if the board's currents are unknown, years are None if
    nothing wears or the card's cycles are unknown."""

    latency_us: float
    io_us: float
    energy_uj: float
    written_bytes: int
    years_first_failure: float | None


def trade(note: str, compute_us: float, input_bytes: int, hardware: Hardware) -> list[Row]:
    """Return the plan first, then of the others that were tried those that none is better than in
    time, energy and bytes written, the fastest first.

    Args:
        note: of the plan: ``Tried`` of each, separated by semicolons.
        compute_us: of an inference, the same for all.
        input_bytes: which is written, too.
    """
    tried = [Tried.of(text) for text in note.split(";")]
    rows = [_row(each, compute_us, input_bytes, hardware) for each in tried]
    keys = [(row["latency_us"], row["energy_uj"], row["written_bytes"]) for row in rows]
    best = [
        n
        for n, key in enumerate(keys)
        if not any(other != key and all(map(le, other, key)) for other in keys)
    ]
    others = sorted({keys[n]: n for n in reversed(best) if keys[n] != keys[0]}.items())
    return [rows[0], *(rows[n] for _, n in others)]


def _row(tried: Tried, compute_us: float, input_bytes: int, hardware: Hardware) -> Row:
    latency_us, io_us = tried.latency_us, tried.read_us + tried.write_us
    both_us = max(0.0, compute_us + io_us - latency_us)  # at least; energy is linear in it
    idle_us, alone_us = max(0.0, latency_us - compute_us - io_us), io_us - both_us
    core_us = compute_us - both_us
    if not hardware.card.dma:  # the core makes the transfers
        core_us, alone_us, both_us = compute_us, 0.0, io_us
    busy = States(core_us, alone_us, both_us, idle_us, compute_us, tried.read_us, tried.write_us)
    written_bytes = tried.written_bytes + input_bytes
    lasts = wear(written_bytes, latency_us, hardware.card)
    return {
        "latency_us": latency_us,
        "io_us": io_us,
        "energy_uj": energy(busy, hardware).total_uj,
        "written_bytes": written_bytes,
        "years_first_failure": lasts.years_first_failure,
    }
