"""A second verifier, which shares nothing with the first: slow, plain, and element by element.

``judge`` runs a small plan under *every* interleaving of its tracks. A cell of memory (a nibble)
holds a token that says what is there (``reference_steps.py``); each step reads and writes the
tokens of each of its elements. It uses the vocabulary's and the graph's declarations alone.

A state is how far each track is. Steps of different tracks that may be next at the same time, and
meet in a granule that one of them writes, race. All ways to a state must leave the same content.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from pipeline.graph.graph import Graph
from pipeline.plan.vocabulary import KEPT, Buffer, Plan, Signal, Wait
from tests.plan.reference_places import Cell, Env, Wrong, inside_memory, number, unrolled
from tests.plan.reference_steps import PASSING, Atoms, Deed, Deeds, Element, Held, Result, Unit

MOST_STATES = 20_000

Content = dict[Cell, Held]
Positions = tuple[int, ...]
Footprint = dict[Cell, bool]
"""(memory, granule): is it written?"""


@dataclass
class Act:
    """One step of one track: a counter to wait for or to raise, or something done to memory."""

    waits: tuple[str, int] | None = None
    signals: str | None = None
    deed: Deed | None = None


def judge(plan: Plan, graph: Graph) -> Counter[str]:
    """Count the elements of each operator's output that are computed.

    Raises:
        Wrong: when the plan is refused.
    """
    deeds = Deeds(plan, graph)
    _static(plan, deeds)
    start = _start(plan, graph, deeds)
    tracks = [[_act(deeds, step, env) for step, env in unrolled(t.steps, {})] for t in plan.tracks]
    _ended(plan, graph, deeds, _explored(plan, tracks, start))
    computed: Counter[str] = Counter()
    for deed in (act.deed for track in tracks for act in track if act.deed):
        computed[deed.op] += deed.computed
    return +computed


def _static(plan: Plan, deeds: Deeds) -> None:
    """Refuse what is wrong with names and places before anything is done."""
    for kind in (plan.memories, plan.buffers, plan.tracks):
        if len({item.name for item in kind}) < len(kind):
            raise Wrong("two things have one name")
    for buffer in plan.buffers:
        if buffer.memory not in deeds.memories:
            raise Wrong(f"there is no memory {buffer.memory}")
        if not inside_memory(buffer, deeds.memories[buffer.memory].bytes):
            raise Wrong(f"{buffer.name} leaves {buffer.memory}")
        if buffer.role in PASSING:
            deeds.scratch(buffer.name)
        else:
            deeds.buffer(buffer.name)


def _act(deeds: Deeds, step: object, env: Env) -> Act:
    if isinstance(step, Wait):
        return Act(waits=(step.counter, number(step.at_least, env)))
    if isinstance(step, Signal):
        return Act(signals=step.counter)
    return Act(deed=deeds.of(step, env))  # type: ignore[arg-type]


# --- the first and the last state


def _each_frame(plan: Plan, graph: Graph, deeds: Deeds, buffer: Buffer) -> Iterator[Element]:
    """All elements of the input, the output or a constant; of every frame."""
    frames = 1 if buffer.tensor in graph.constants else plan.frames
    if buffer.copies != frames:
        raise Wrong(f"{buffer.name} has {buffer.copies} copies for {frames} frames")
    for frame in range(frames):
        yield from deeds.all_of(buffer, frame)


def _start(plan: Plan, graph: Graph, deeds: Deeds) -> Content:
    content: Content = {}
    there, reads = [deeds.buffer(name).tensor for name in plan.resident], _reads(graph)
    if any(there.count(name) > 1 for name in (graph.input, *reads)):
        raise Wrong("the input, or a state, comes twice")
    for name in plan.resident:
        buffer = deeds.buffer(name)
        if buffer.role == "accumulator" or buffer.tensor not in {
            graph.input,
            *reads,
            *graph.constants,
        }:
            raise Wrong(f"{name} cannot be there before the first step")
        kind = deeds.memories[buffer.memory].kind
        if kind in (("rom",) if buffer.tensor == graph.input else ("stream", "frame")) or (
            buffer.tensor in reads and kind != "ram"
        ):
            raise Wrong(f"{name} cannot come in {buffer.memory}")
        for element in _each_frame(plan, graph, deeds, buffer):
            for cell, token in zip(*element, strict=True):
                if content.setdefault(cell, (token, None)) != (token, None):
                    raise Wrong(f"two residents in {cell}")
    return content


def _ended(plan: Plan, graph: Graph, deeds: Deeds, content: Content) -> None:
    outputs = [deeds.buffer(name) for name in plan.outputs]
    if [(of.tensor, of.role) for of in outputs] != [(n, "activation") for n in graph.outputs]:
        raise Wrong(f"{plan.outputs} are not the outputs")
    there = [deeds.buffer(name) for name in plan.resident]
    promised = bool(dict(plan.notes).get(KEPT))
    reads = _reads(graph)
    stay = [b for b in there if b.tensor in graph.constants or (promised and b.tensor not in reads)]
    for buffer in (*outputs, *stay):
        for element in _each_frame(plan, graph, deeds, buffer):
            for cell, token in zip(*element, strict=True):
                if content.get(cell) != (token, None):
                    raise Wrong(f"{buffer.name} is not there at the end")
    _next_call(plan, graph, deeds, content)


def _reads(graph: Graph) -> dict[str, str]:
    """Map what a call reads of a state to what is made for the next."""
    return {of.read: of.made for of in graph.states}


def _next_call(plan: Plan, graph: Graph, deeds: Deeds, content: Content) -> None:
    """Call the elements that states have become by the names that the next call has for them: it
    has to find what this one found. So does each call after it, and the first finds initial values
    in the very same cells."""
    known = {deeds.buffer(name).tensor: deeds.buffer(name) for name in plan.resident}
    ends = [deeds.buffer(name) for name in plan.states]
    if [of.tensor for of in ends] != [*_reads(graph).values()] or (ends and plan.frames > 1):
        raise Wrong(f"{plan.states} are not the states")
    for (read, made), end in zip(_reads(graph).items(), ends, strict=True):
        if read not in known:
            raise Wrong(f"{read} is not there before the first step")
        found, said = (list(_each_frame(plan, graph, deeds, of)) for of in (known[read], end))
        if [each.cells for each in found] != [each.cells for each in said]:
            raise Wrong(f"{end.name} says that {read} is elsewhere")
        for cells, tokens in found:
            for cell, (_, *rest) in zip(cells, tokens, strict=True):
                if content.get(cell) != ((made, *rest), None):
                    raise Wrong(f"the next call does not find {read} in {cell}")


# --- every interleaving


def _explored(plan: Plan, tracks: list[list[Act]], start: Content) -> Content:
    """Try every interleaving of the tracks; return what memory holds at the end."""
    granules = {memory.name: 2 * memory.granule_bytes for memory in plan.memories}
    feet = [[footprint(a.deed, granules) if a.deed else {} for a in track] for track in tracks]
    first = (0,) * len(tracks)
    states: dict[Positions, Content] = {first: start}
    pending = [first]
    while pending:
        at = pending.pop()
        able = _able(tracks, at)
        if not able and any(p < len(t) for p, t in zip(at, tracks, strict=True)):
            raise Wrong(f"deadlock at {at}")
        for a, b in combinations(able, 2):
            if conflict(feet[a][at[a]], feet[b][at[b]]):
                raise Wrong(f"race of steps {at[a]} and {at[b]} of tracks {a} and {b}")
        for track in able:
            deed = tracks[track][at[track]].deed
            after = (*at[:track], at[track] + 1, *at[track + 1 :])
            content = _done(deed, states[at]) if deed else states[at]
            if after not in states:
                states[after] = content
                pending.append(after)
                assert len(states) < MOST_STATES, "too many states for a reference"
            elif states[after] is not content and states[after] != content:
                raise Wrong(f"what is held at {after} depends on timing")
    return states[tuple(map(len, tracks))]


def _able(tracks: list[list[Act]], at: Positions) -> list[int]:
    """The tracks that can go on."""
    done = [act for track, position in zip(tracks, at, strict=True) for act in track[:position]]
    counters = Counter(act.signals for act in done if act.signals is not None)
    able = []
    for n, (track, position) in enumerate(zip(tracks, at, strict=True)):
        if position < len(track):
            waits = track[position].waits
            if waits is None or counters[waits[0]] >= waits[1]:
                able.append(n)
    return able


def footprint(deed: Deed, granules: dict[str, int]) -> Footprint:
    """Every granule that a step touches; ``granules``: nibbles of each memory's."""
    result: Footprint = {}
    for (memory, nibble), written in (*((c, True) for c in deed.scratch), *deed.touched()):
        granule = (memory, nibble // granules[memory])
        result[granule] = result.get(granule, False) or written
    for memory in {memory for unit in deed.units for memory in unit.taken}:
        result[_taken(memory)] = True  # reading a stream moves it on
    return result


def conflict(a: Footprint, b: Footprint) -> bool:
    return any(written or b[granule] for granule, written in a.items() if granule in b)


def _taken(memory: str) -> Cell:
    """The cell that says how many nibbles of a stream have been read."""
    return memory, -1


def _done(deed: Deed, before: Content) -> Content:
    content = dict(before)
    for cell in deed.scratch:
        content.pop(cell, None)
    for unit in deed.units:
        _stream(unit, content)
        for cell, token in unit.reads:
            if content.get(cell) != (token, None):
                raise Wrong(f"{deed.op} needs {token} in {cell}, finds {content.get(cell)}")
        changed = [result.change(_held(result, content, deed.op)) for result in unit.results]
        for result, atoms in zip(unit.results, changed, strict=True):
            for cell, token in zip(*result.target, strict=True):
                content[cell] = (token, atoms)
    return content


def _held(result: Result, content: Content, op: str) -> Atoms:
    """The atoms of the element that the result is made from."""
    if result.source is None:
        return None
    found = set()
    for cell, token in zip(*result.source, strict=True):
        held = content.get(cell)
        if held is None or held[0] != token:
            raise Wrong(f"{op} needs {token} in {cell}, finds {held}")
        found.add(held[1])
    if len(found) > 1:
        raise Wrong(f"{op} finds parts of two sums")
    return found.pop()


def _stream(unit: Unit, content: Content) -> None:
    """Check that a unit reads of a stream what comes next, and once for each operand."""
    for memory, nibbles in unit.taken.items():
        held = content.get(_taken(memory))
        next_ = held[0][5] if held else 0
        if sorted(nibbles) != list(range(next_, next_ + len(nibbles))):
            raise Wrong(f"{memory} is read twice or out of order")
        content[_taken(memory)] = ((memory, "taken", 0, 0, 0, next_ + len(nibbles), 0), None)
