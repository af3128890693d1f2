"""An operator alone: all of its output at once."""

from dataclasses import dataclass

from pipeline.graph.operator import Operator
from pipeline.plan.vocabulary import Step
from pipeline.schedules.draft import Draft


@dataclass(frozen=True)
class Whole:
    """``over``: the input whose place the output takes; ``joined``: what lies in that place, too,
    each so many nibbles from its beginning; ``place``: what is dead, whose place it takes."""

    op: Operator
    over: str = ""
    place: str = ""
    joined: tuple[tuple[str, int], ...] = ()

    def steps(self, draft: Draft) -> list[Step]:
        for name, at in self.joined:
            draft.join(name, self.over, at)
        home = draft.home.get(self.over, "")
        taken = [self.over] * bool(home)
        out = draft.hold(self.op.output, over=home or draft.home.get(self.place, ""))
        return [draft.compute(self.op, out, over=taken)]
