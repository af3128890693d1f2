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
    """No loop with more than ``channels`` at once; with fewer, none takes another's place: kernels
    that do so are for the numbers that were asked for."""
    return tuple(
        replace(apart(part), at_once=channels)
        if isinstance(part, Loop) and part.at_once > channels
        else part
        for part in plan
    )


def apart(loop: Loop) -> Loop:
    """Nothing in the place of something else."""
    return replace(loop, steps=tuple(replace(step, over="") for step in loop.steps))
