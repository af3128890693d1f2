"""Tracks by what they do: one computes, one moves."""

from collections.abc import Sequence

from pipeline.errors import ThimbleError
from pipeline.plan.unrolled import repeated
from pipeline.plan.vocabulary import Move, Plan, Signal, Step, Track, Wait


def split(plan: Plan) -> tuple[Track, Track | None]:
    """The track that computes, and the one that only moves to and from a card, if there is one.

    Raises:
        ThimbleError: for other tracks.
    """
    busy = [track for track in plan.tracks if track.steps]
    moving = [track for track in busy if _only_moves(plan, track.steps)] if len(busy) > 1 else []
    computing = [track for track in busy if track not in moving]
    if len(computing) != 1 or len(moving) > 1:
        raise ThimbleError(
            "generated code runs one track that computes and one that moves to and from a card, "
            f"the plan has {', '.join(track.name for track in busy) or 'none'}"
        )
    return computing[0], moving[0] if moving else None


def _only_moves(plan: Plan, steps: Sequence[Step]) -> bool:
    """Check whether one side of each move, and not the other, is on the card."""
    return all(
        isinstance(step, Signal | Wait)
        or (
            isinstance(step, Move)
            and (step.src.buffer in plan.on_card) != (step.dst.buffer in plan.on_card)
        )
        for step, _ in repeated(steps)
    )
