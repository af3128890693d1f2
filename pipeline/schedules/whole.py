"""An operator alone: all of its output at once."""

from dataclasses import dataclass

from pipeline.graph.operator import Operator
from pipeline.plan.vocabulary import Step
from pipeline.schedules.draft import Draft


@dataclass(frozen=True)
class Whole:
    """``over``: the input whose place the output takes, with all others that it may overwrite
    behind that if these are to be joined; ``place``: what is dead, whose place it takes."""

    op: Operator
    over: str = ""
    place: str = ""

    def steps(self, draft: Draft) -> list[Step]:
        joins = len(self.op.in_place(draft.graph.tensors)) > 1 and not self.op.element_wise
        home = draft.join(self.op) if joins and self.over else draft.home.get(self.over, "")
        taken = [self.over] * bool(home)
        out = draft.hold(self.op.output, over=home or draft.home.get(self.place, ""))
        return [draft.compute(self.op, out, over=taken)]
