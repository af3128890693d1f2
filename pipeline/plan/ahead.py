"""Bytes of the arena by way of which inputs of the next inference go to a card while one computes,
and outputs of the last one come from it.

No step of a plan may touch them, nor a line of the data cache that they lie in (``well_formed``):
what passes there changes nothing that the plan is proved for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pipeline.errors import ThimbleError
from pipeline.hardware import Card, Hardware
from pipeline.plan.buffers import AHEAD, Buffer
from pipeline.plan.cost import high_water_nibbles
from pipeline.plan.vocabulary import Plan, packed


def place(plan: Plan) -> Buffer | None:
    """Find them; None where a plan's inputs are fed between inferences."""
    return next((buffer for buffer in plan.buffers if buffer.role == AHEAD), None)


def beside(planned: Callable[[Hardware], Plan], hardware: Hardware, size: int) -> Plan:
    """Return what is ``planned`` in ``size`` bytes less, which lie above the rest of the arena."""
    check(size, card := hardware.card)
    less = replace(card, driver_bytes=card.driver_bytes + size)
    plan, memory = planned(replace(hardware, card=less)), hardware.activation_memory
    at = packed((size,), 8, high_water_nibbles(plan, memory, constants=True))
    buffer = Buffer(f".{AHEAD}", "", memory, (size,), 8, at, AHEAD)
    return replace(plan, buffers=(*plan.buffers, buffer))


def check(size: int, card: Card) -> None:
    """
    Raises:
        ThimbleError: for no whole blocks, one of which is for outputs, and for a card that has to
            be fed between inferences.
    """
    block, alone = card.block_bytes, card.dma and not (card.sealed or card.summed)
    if not alone or size % block or size < 2 * block:
        raise ThimbleError(
            f"strategy.ahead_bytes={size}: 0, or two blocks of the card of {block} B or more, on a "
            "board with DMA, whose card is not checked (security=unchecked)"
        )
