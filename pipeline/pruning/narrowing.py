"""Choice of the channels to remove, so that a network keeps to its limits and loses little.

What a group of channels is worth is the logarithm of its strength: half of a narrow layer costs as
much as half of a wide one, and the last channels cost most. First a few channels go at a time, of
the group that loses least for what the planner says is saved; then each group gets back what still
fits, because a step for one bottleneck may turn out to have been needless after the next.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, log

from pipeline.importers.float_graph import FloatGraph
from pipeline.pruning.couplings import Couplings, Group, Mask
from pipeline.pruning.cut import cut
from pipeline.pruning.planner import Needs
from pipeline.pruning.shares import Scores

BITE = 0.5
"""Share of what a group alone would have to lose: lost before the planner is asked again."""


@dataclass(frozen=True)
class Narrowing:
    """
    Attributes:
        found: the network, and which of its channels are tied.
        scores: (units,), the strength of each.
        ask: what a network needs; ``estimate``: about that, sooner.
        over: by what factor needs exceed the worst limit.
        savings: what each group saves for a channel less, by an estimate, as a share of what is
            needed; and whether that is no more than a hope, so that the planner has to be asked.
    """

    found: Couplings
    scores: Scores
    ask: Callable[[FloatGraph], Needs]
    estimate: Callable[[FloatGraph], Needs]
    over: Callable[[Needs], float]
    savings: Callable[[Couplings, Mask, Needs], tuple[dict[Group, float], bool]]

    def within(self, needs: Needs, target: float) -> tuple[Mask, Needs]:
        """Return the units to keep so that the worst limit is exceeded by ``target`` at most, or by
        as little as can be reached; ``needs`` is of the whole network."""
        kept, aim = self.found.everything(), target
        while True:
            kept, seen = self.seen_within(kept, needs, aim)
            needs = self.ask(cut(self.found, kept))
            if self.over(needs) <= target or self.over(seen) > aim:
                return kept, needs
            aim *= target / self.over(needs)

    def seen_within(self, kept: Mask, needs: Needs, target: float) -> tuple[Mask, Needs]:
        """Return the same, of the units in ``kept``, by estimates."""
        while self.over(needs) > target:
            chosen = self.step(kept, needs, 1 - target / self.over(needs))
            if chosen is None:
                return kept, needs
            kept, needs = chosen
        return self.given_back(kept, needs, target)

    def step(self, kept: Mask, needs: Needs, share: float) -> tuple[Mask, Needs] | None:
        """Take a few units from the group that loses least for what is saved; where none saves
        anything alone, as with two bottlenecks, by the estimate. The planner is not asked about
        groups that would cost more even if all of the estimate were saved."""
        saved, asks = self.savings(self.found, kept, needs)
        choices = list[tuple[float, float, Mask]]()
        for group, each in saved.items():
            fewer = self.fewer(group, kept, share)
            if each > 0 and fewer is not None:
                loss = self.loss(group, kept, fewer)
                choices.append((loss, each * float((kept & ~fewer).sum()), fewer))
        best, least = None, (inf, inf)
        for loss, part, fewer in sorted(choices, key=lambda choice: choice[0] / choice[1]):
            price, after = inf, None
            if asks and loss < least[0] * hoped(part):
                after = self.estimate(cut(self.found, fewer))
                gain = log(self.over(needs) / self.over(after)) if self.over(after) else inf
                price = loss / gain if gain > 0 else inf
            if (price, loss / part) < least:
                best, least = (fewer, after), (price, loss / part)
        if best is None:
            return None
        fewer, after = best
        return fewer, after or self.estimate(cut(self.found, fewer))

    def fewer(self, group: Group, kept: Mask, share: float) -> Mask | None:
        """Drop the weakest units of ``group`` that may go; None where all have to stay."""
        alive = self.by_strength([unit for unit in group.units if kept[unit]])
        most = min(max(1, int(len(alive) * share * BITE)), len(alive) - 1)
        fewer, gone = kept.copy(), 0
        for unit in alive:
            if gone == most:
                break
            fewer[unit] = False
            if self.found.allows(fewer):
                gone += 1
            else:
                fewer[unit] = True
        return fewer if gone else None

    def given_back(self, kept: Mask, needs: Needs, target: float) -> tuple[Mask, Needs]:
        """Give back as many of the strongest units that went as still fit, the poorest group
        first."""
        everything = self.found.everything()
        for group in sorted(self.found.groups, key=lambda each: -self.loss(each, everything, kept)):
            gone = self.by_strength([unit for unit in group.units if not kept[unit]])[::-1]
            low, high = 0, len(gone) + 1
            while high - low > 1:
                middle = (low + high) // 2
                more = kept.copy()
                more[gone[:middle]] = True
                after = self.estimate(cut(self.found, more))
                if self.over(after) <= target:
                    low, kept_so, needs_so = middle, more, after
                else:
                    high = middle
            if low:
                kept, needs = kept_so, needs_so
        return kept, needs

    def loss(self, group: Group, kept: Mask, fewer: Mask) -> float:
        """Return how far the log strength of ``group`` falls from ``kept`` to ``fewer``."""
        units = list(group.units)
        before, after = (float(self.scores[units][mask[units]].sum()) for mask in (kept, fewer))
        return log(before / after) if after > 0 else inf if before > 0 else 0.0

    def by_strength(self, units: list[int]) -> list[int]:
        """Return the weakest first; of equal ones the first."""
        return sorted(units, key=lambda unit: (self.scores[unit], unit))


def hoped(part: float) -> float:
    """Return what is gained, as a logarithm, where ``part`` of what is needed is saved."""
    return -log(1 - part) if part < 1 else inf
