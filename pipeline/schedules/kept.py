"""The end of a call: what the next one finds is where that looks for it."""

from collections.abc import Iterator

from pipeline.plan.vocabulary import Move
from pipeline.schedules.bounds import all_of
from pipeline.schedules.draft import Draft


def kept(draft: Draft) -> Iterator[Move]:
    """Move each state that was not made in the place of the one that was read."""
    for state in draft.graph.states:
        read, made = draft.home[state.read], draft.home[state.made]
        if draft.base(made) != (read, 0):
            source, place = draft.buffer(made), draft.buffer(read).map
            target = draft.hold_at(state.made, place, "kept", over=read)
            yield draft.move(source, target, all_of(source.shape))
