"""How many channels a loop computes at once (Pex, remark 4)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from pipeline.search.channels.replay import Load
from pipeline.search.channels.schedule import Loop, Schedule


def widest(plan: Schedule, loads: Collection[Load], limit: int) -> Schedule:
    """Each loop with as many channels at once as keep it within ``limit`` nibbles, at least one."""
    result = []
    for place, part in enumerate(plan):
        if isinstance(part, Loop):
            room = [
                (limit - load.fixed) // load.channel
                for load in loads
                if load.loop == place and load.channel
            ]
            part = replace(part, at_once=max(1, min([part.channels, *room])))
        result.append(part)
    return tuple(result)


def at_most(plan: Schedule, channels: int) -> Schedule:
    """No loop with more than ``channels`` at once."""
    return tuple(
        replace(part, at_once=min(part.at_once, channels, part.channels))
        if isinstance(part, Loop)
        else part
        for part in plan
    )
