"""Steps in a row, and dealt to tracks that wait for one another where they have to."""

from __future__ import annotations

from pipeline.plan.vocabulary import Move, Plan, Signal, Step, Track, Wait
from tests.plan.random_plans_steps import Draft, Need, Task
from tests.plan.reference import Footprint, conflict, footprint
from tests.plan.reference_places import Wrong
from tests.plan.reference_steps import Deeds

MOST_STEPS = {1: 100, 2: 14, 3: 10}
"""By the number of tracks: their interleavings are to be enumerated."""


def in_a_row(draft: Draft) -> list[Task]:
    """The tasks in an order that their needs allow."""
    before = _before(draft)
    style = "depth" if draft.streams else draft.pick("emitted", "depth", "depth", "random")
    done: list[int] = []
    left = list(range(len(draft.tasks)))
    while left:
        ready = [n for n in left if before[n] <= set(done)]
        chosen = ready[0]
        if style == "random":
            chosen = draft.pick(*ready)
        elif style == "depth":  # as far along as possible, in order there
            chosen = max(ready, key=lambda n: (_depth(draft, draft.tasks[n]), -n))
        left.remove(chosen)
        done.append(chosen)
    return [draft.tasks[n] for n in done]


def _before(draft: Draft) -> list[set[int]]:
    """The tasks that have to come before each: what makes its needs, and what another frame still
    does to the elements that it makes."""
    makers: dict[Need, set[int]] = {}
    users: dict[Need, set[int]] = {}
    before = []
    for n, task in enumerate(draft.tasks):
        found = set(task.after)
        for need in task.needs:
            found |= makers.get(need, set())
        for made in task.makes:
            others = users.get(made, set())
            found |= {m for m in others if draft.tasks[m].step.frame != task.step.frame}
        before.append(found)
        for made in task.makes:
            makers.setdefault(made, set()).add(n)
        for used in task.needs | task.makes:
            users.setdefault(used, set()).add(n)
    return before


def _depth(draft: Draft, task: Task) -> int:
    """How far along the network."""
    names = [op.name for op in draft.graph.operators]
    if not isinstance(task.step, Move):
        return names.index(task.step.op)
    tensor = draft.buffers[task.step.dst.buffer].tensor
    return names.index(tensor) if tensor in names else -1


def dealt(draft: Draft, row: list[Task], plan: Plan) -> tuple[Track, ...]:
    """The steps on one to three tracks, with the waits that their cells ask for, or more."""
    count = draft.pick(1, 2, 2, 2, 3, 3)
    if not 2 <= len(row) <= MOST_STEPS[count]:
        count = 1
    mine = [draft.below(count) for _ in row]
    if count > 1 and draft.chance(0.5):
        mine = [int(isinstance(task.step, Move)) for task in row]  # on a track of their own
    late = _late(draft, row, plan, mine) if count > 1 else [{} for _ in row]
    needed = {latest for each in late for latest in each.values()}
    names = [f"t{n}" for n in range(count)]
    if draft.chance(0.03):
        names = ["t"] * count
    eager = draft.chance(0.3)  # waits again for what it has waited for
    steps: list[list[Step]] = [[] for _ in range(count)]
    signals: list[list[int]] = [[] for _ in range(count)]  # the steps after which each signals
    raised: dict[tuple[int, int], int] = {}
    for n, task in enumerate(row):
        track = mine[n]
        for other, latest in late[n].items():
            level = signals[other].index(latest) + 1
            if eager or level > raised.get((track, other), 0):
                raised[track, other] = level
                steps[track].append(Wait(names[other], level))
        if draft.chance(0.01):
            steps[track].append(Wait("nobody", -draft.below(2)))
        steps[track].append(task.step)
        if n in needed:
            signals[track].append(n)
            steps[track].append(Signal(names[track]))
    engines = ("cpu", "io", "dma")[:count]
    return tuple(Track(e, tuple(each)) for e, each in zip(engines, steps, strict=True))


def _late(draft: Draft, row: list[Task], plan: Plan, mine: list[int]) -> list[dict[int, int]]:
    """For each step, the latest earlier one of each other track that it must not overtake."""
    deeds = Deeds(plan, draft.graph)
    granules = {memory.name: 2 * memory.granule_bytes for memory in plan.memories}
    feet: list[Footprint] = []
    result = []
    for n, task in enumerate(row):
        try:
            feet.append(footprint(deeds.of(task.step, {}), granules))
        except Wrong:  # it will be refused anyway
            feet.append({})
        met = [m for m in range(n) if mine[m] != mine[n] and conflict(feet[m], feet[n])]
        result.append({mine[m]: m for m in met})
    return result
