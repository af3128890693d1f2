"""Attacks by magnitude: numbers below zero, and numbers that no machine holds."""

from __future__ import annotations

from dataclasses import replace

from pipeline.hardware import Memory
from pipeline.plan.vocabulary import Affine, Buffer, Signal, Table, Track
from tests.plan.adversarial import (
    Subject,
    attack,
    buffer,
    changed,
    layer,
    moved,
    of_layer,
    on_layer,
    plan_with,
    rebuffered,
    scratch,
    with_buffers,
    with_memory,
)


@attack("in granules of")
def granule_of_nothing() -> Subject:
    """Engines that read and write 0 bytes at once, on two tracks."""
    plan, graph = layer()
    idle = Track("idle", (Signal("s"),))
    return with_memory(replace(plan, tracks=(*plan.tracks, idle)), granule_bytes=0), graph


@attack("in granules of")
def granule_of_nothing_on_one_track() -> Subject:
    """Nothing can race, but nothing can be read either."""
    return of_layer(lambda plan: with_memory(plan, granule_bytes=0))


@attack("in granules of")
def negative_granule() -> Subject:
    """-1 bytes at once."""
    plan, graph = layer()
    idle = Track("idle", (Signal("s"),))
    return with_memory(replace(plan, tracks=(*plan.tracks, idle)), granule_bytes=-1), graph


on_layer(
    # A memory of -1 bytes that nothing lies in.
    (
        "negative_memory",
        "in granules of",
        lambda plan: replace(plan, memories=(*plan.memories, Memory("none", -1))),
    ),
    # Neither rom nor stream, so everything may be written.
    (
        "memory_of_a_kind_that_does_not_exist",
        "Memory.kind is 'eeprom'",
        lambda plan: with_memory(plan, kind="eeprom"),
    ),
    # Within its memory, but a token for every cell below it is more than a machine holds.
    (
        "address_in_a_memory_of_a_terabyte",
        "buffers reach more than",
        lambda plan: moved(with_memory(plan, bytes=1 << 41), "y", 1 << 40),
    ),
    # Nobody uses it, but it is looked after all the same.
    (
        "scratch_in_a_memory_of_a_terabyte",
        "buffers reach more than",
        lambda plan: with_buffers(with_memory(plan, bytes=1 << 41), scratch(1 << 40)),
    ),
    # A place at nibble -4, which numpy takes for one at the end.
    ("negative_table", "is not of its shape", buffer("y", map=Table((16, 20, -4)))),
    # Byte -2, which numpy takes for one at the end.
    ("negative_address", "reaches nibbles", lambda plan: moved(plan, "y", -2)),
    # A ring of -3.
    ("negative_ring", "is not of its shape", buffer("y", map=Affine(16, (4,), (-3,)))),
)


@attack("are no places apart")
def frames_of_2_to_the_40() -> Subject:
    """More frames than anyone counts to, each in the same place."""
    plan, graph = layer()
    many = rebuffered(rebuffered(plan, "x", copies=1 << 40), "y", copies=1 << 40)
    return replace(many, frames=1 << 40), graph


on_layer(
    # 0 frames of the input, 0 of the output.
    ("no_frames", "a plan is for 1 to", plan_with(frames=0)),
    # -1 frames.
    ("negative_frames", "a plan is for 1 to", plan_with(frames=-1)),
)


@attack("has 4611686018427387904 elements")
def shape_of_scratch_that_is_larger_than_any_memory() -> Subject:
    """2**62 elements that all lie in the same place."""
    plan, graph = layer()
    vast = Buffer("scratch", "", "sram", (1 << 31, 1 << 31), 8, Affine(128, (0, 0)), "scratch")
    return changed(with_buffers(plan, vast), scratch=("scratch",)), graph


@attack("is not in one piece")
def scratch_of_a_billion_elements_in_one_place() -> Subject:
    """A map without strides: within its memory, but 2**30 elements to destroy one by one."""
    plan, graph = layer()
    vast = Buffer("scratch", "", "sram", (1 << 30,), 8, Affine(128, (2,), (4,)), "scratch")
    return changed(with_buffers(plan, vast), scratch=("scratch",)), graph
