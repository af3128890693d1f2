"""An operator alone: all of its output at once."""

from dataclasses import dataclass

from pipeline.graph.operator import Operator
from pipeline.plan.vocabulary import Step
from pipeline.schedules.draft import Draft


@dataclass(frozen=True)
class Whole:
    """``over``: the input whose place the output takes."""

    op: Operator
    over: str = ""

    def steps(self, draft: Draft) -> list[Step]:
        out = draft.hold(self.op.output, over=draft.home.get(self.over, ""))
        return [draft.compute(self.op, out, over=[self.over] * bool(self.over))]
