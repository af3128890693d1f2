"""Plans with one mistake, or two, and what becomes of them.

``python -m tests.plan.mutations [number]`` makes that many plans and prints for each subject how
many mistakes that took; how many of these made no plan at all; how many change an output under some
timing, or are undefined, and how many of those are accepted; how many are harmless, and which share
of those is refused all the same; and how many end in an exception of another kind.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Plan, PlanError
from tests.plan.bounds import little_memory
from tests.plan.changes import Rng
from tests.plan.mistakes import MISTAKES, a_field
from tests.plan.outcomes import differs, wanted
from tests.plan.subjects import Subject, subjects

T = TypeVar("T")


@dataclass(frozen=True)
class Mutant:
    """``plan`` is None where none can be made."""

    kind: str
    plan: Plan | None


@dataclass
class Tally:
    """What became of mutants; ``wrong`` are those accepted that change an output."""

    mutants: int = 0
    unmade: int = 0
    changed: int = 0
    harmless: int = 0
    harmless_refused: int = 0
    wrong: list[Mutant] = field(default_factory=list)
    raw: list[tuple[str, str]] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)

    def __iadd__(self, other: Tally) -> Tally:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)
        return self


def tried(make: Callable[[], T]) -> tuple[T | None, str]:
    """What ``make`` gives, None if it is refused; and any exception but a ``PlanError``."""
    try:
        with little_memory():
            return make(), ""
    except PlanError:
        return None, ""
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


def mutant(rng: Rng, plan: Plan, graph: Graph, only: str = "") -> tuple[Mutant, str]:
    """``plan`` with one mistake, seldom with two; and what its making ended in, if not well. Any
    mistakes, or ``only`` those of one kind: ``a_twin``, ``Buffer.bits``."""
    kinds = []
    mistakes = [each for each in MISTAKES if only in ("", each.__name__)]
    of_a_field = 1.0 if not mistakes else 0.0 if only else 0.75
    for _ in range(2 if rng.random() < 0.1 else 1):
        if rng.random() >= of_a_field:
            mistake = mistakes[int(rng.integers(len(mistakes)))]
            kind, made = mistake.__name__, tried(lambda p=plan, m=mistake: m(rng, p))
        else:
            kind, make = a_field(rng, plan, graph, only)
            made = tried(make)
        kinds.append(kind)
        changed, raw = made
        if changed is None:
            return Mutant(" and ".join(kinds), None), raw
        plan = changed
    return Mutant(" and ".join(kinds), plan), ""


def trial(
    subject: Subject, seed: int, number: int, judge_refused: bool = True, only: str = ""
) -> Tally:
    """Of one subject ``number`` mutants, and as many as are refused when they are made.

    Unless ``judge_refused``, those that the verifier refuses are counted as harmless. ``only``: of
    one kind of mistake.
    """
    rng = np.random.default_rng([seed, *subject.name.encode()])
    right = wanted(subject.plan, subject.graph, subject.inputs)
    tally = Tally()
    while tally.mutants - tally.unmade < number:
        made, raw = mutant(rng, subject.plan, subject.graph, only)
        plan = made.plan
        if plan and tried(lambda plan=plan: repr(plan))[0] == repr(subject.plan):
            continue
        tally.mutants += 1
        tally.kinds.update(made.kind.split(" and "))
        report = None
        if plan is not None:
            report, raw = tried(lambda plan=plan: verify(plan, subject.graph))
        if raw:
            tally.raw.append((made.kind, raw))
        elif plan is None:
            tally.unmade += 1
        elif (report or judge_refused) and differs(plan, subject.graph, subject.inputs, right):
            tally.changed += 1
            tally.wrong += [made] if report else []
        else:
            tally.harmless += 1
            tally.harmless_refused += report is None
    return tally


HEAD = ("mutants", "unmade", "change", "accepted", "harmless", "refused %", "raw")


def row(name: str, tally: Tally) -> str:
    share = 100 * tally.harmless_refused / max(1, tally.harmless)
    counts = (tally.mutants, tally.unmade, tally.changed, len(tally.wrong), tally.harmless)
    return f"{name:44}" + "".join(f"{n:10,}" for n in counts) + f"{share:10.1f}{len(tally.raw):10,}"


def main(number: int) -> None:
    print(f"{'subject':44}" + "".join(f"{title:>10}" for title in HEAD))
    total, each = Tally(), -(-number // len(subjects()))
    for name, subject in subjects().items():
        tally = trial(subject, 1, each)
        print(row(name, tally), flush=True)
        total += tally
    print(row("all", total))
    for made in total.wrong[:20]:
        print(f"\naccepted, though it changes an output: {made.kind}: {made.plan}")
    for (kind, error), count in Counter(total.raw).most_common(50):
        print(f"\n{count} times: {kind} ends in {error[:200]}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
