"""All that reads a plan answers unproved ones and what is left of damaged files, or says a line."""

import json
import resource
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from pipeline import verdict
from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.plan import serialize
from pipeline.plan.calibrate import calibrated
from pipeline.plan.cost import cost, moved_bytes
from pipeline.plan.draw import pseudocode
from pipeline.plan.fit import fits, roomy
from pipeline.plan.forms import forms
from pipeline.plan.interpret import interpret
from pipeline.plan.profile import profile
from pipeline.plan.proof import prove
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Plan, Track
from pipeline.report import page as report_page
from pipeline.timing.simulate import simulate
from pipeline.timing.summary import summary
from tests.plan.mutations import Rng, mutant
from tests.plan.subjects import Subject, subjects
from tests.tiers import quick

MOST_BYTES = 4 << 30
"""Most bytes of memory, beside what was there before."""

Reader = Callable[[Plan, Subject], Any]


def generated(core: str) -> Reader:
    """C is made of what was proved, as stage generate does it."""

    def read(plan: Plan, subject: Subject) -> Any:
        prove(plan, subject.graph)
        return generate(subject.graph, plan, replace(subject.hardware, core=core), {})

    return read


def page(plan: Plan, subject: Subject) -> None:
    report = verdict.check(plan, subject.graph, subject.hardware)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "plan.html"
        costs = cost(roomy(plan), subject.graph, subject.hardware)
        report_page.write(place, subject.graph, plan, subject.hardware, costs, report)


def shown(plan: Plan, subject: Subject) -> str:
    frame = subject.inputs[0] if plan.frames > 1 else subject.inputs[0][0]
    return str(interpret(plan, subject.graph, frame))


READERS: dict[str, Reader] = {
    "verify": lambda plan, of: verify(plan, of.graph),
    "roomy": lambda plan, of: verify(roomy(plan), of.graph),
    "cost": lambda plan, of: cost(roomy(plan), of.graph, of.hardware),
    "fit": lambda plan, of: fits(plan, cost(of.plan, of.graph, of.hardware), of.hardware),
    "moved_bytes": lambda plan, of: moved_bytes(plan),
    "profile": lambda plan, of: profile(plan),
    "forms": lambda plan, of: forms(plan),
    "interpret": shown,
    "calibrated": lambda plan, of: calibrated(plan, of.graph, of.inputs[0]),
    "pseudocode": lambda plan, of: pseudocode(plan),
    "simulate": lambda plan, of: simulate(plan, of.graph, of.hardware),
    "summary": lambda plan, of: summary(plan, of.graph, of.hardware),
    "page": page,
    "hash": lambda plan, of: serialize.plan_hash(plan),
    "generate avr": generated("avr"),
    "generate cortex_m": generated("cortex_m"),
    "generate host": generated("host"),
}


@contextmanager
def little_memory() -> Iterator[None]:
    """``MemoryError`` beyond ``MOST_BYTES``."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    most = psutil.Process().memory_info().vms + MOST_BYTES
    if limits[0] == resource.RLIM_INFINITY or most < limits[0]:
        resource.setrlimit(resource.RLIMIT_AS, (most, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def answers(plan: Plan, subject: Subject, readers: dict[str, Reader]) -> Iterator[tuple[str, str]]:
    """(reader, exception) of those that end in anything but a result or one ``ThimbleError``."""
    for name, read in readers.items():
        try:
            with little_memory(), np.errstate(all="ignore"):
                read(plan, subject)
        except ThimbleError as error:
            if "\n" in str(error):
                yield name, f"{len(str(error).splitlines())} lines: {error}"
        except Exception as error:
            yield name, f"{type(error).__name__}: {error}"


VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 1 << 31, 1 << 63, 10**30, 1.5, 0.0, -1e300, nan, inf, "", "x", "0",
    [], [[]], {}, [0], {"type": "Lin"}, {"type": "Plan"}, {"type": "Signal", "counter": "x"},
    {"type": None}, {"type": []}, {"type": "Nothing"}, {"type": "__class__"},
    "*/ abort(); /*", "\0", "\n",
)  # fmt: skip
"""Values that may stand in the place of anything."""
TYPES = (*serialize.CLASSES, "Nothing", "plan", "Event", "Exception", "str")
KEYS = ("", "type", "__post_init__", "copy", "buffer", "BUFFER", "extent")
NESTED = 200_000
"""Brackets in brackets, more than any stack takes."""


def places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Everything within ``tree``: a dict or a list, and one of its keys or positions."""
    for key, item in list(tree.items() if isinstance(tree, dict) else enumerate(tree)):
        yield tree, key
        if isinstance(item, dict | list):
            yield from places(item)


TREES: dict[str, tuple[type, ...]] = {
    "a key or an item less": (object,),
    "another key": (dict,),
    "an item twice": (list,),
    "another value": (object,),
    "another type": (dict,),
    "in brackets": (object,),
    "retyped": (int, str, list),
    "near": (int,),
}
"""Damages, and what each is of."""


def of_tree(rng: Rng, tree: Any, kind: str) -> None:
    found = [(holder, key) for holder, key in places(tree) if isinstance(holder[key], TREES[kind])]
    holder, key = found[int(rng.integers(len(found)))]
    item = holder[key]

    def pick(items: Any) -> Any:
        return items[int(rng.integers(len(items)))]

    match kind:
        case "a key or an item less":
            del holder[key]
        case "another key":
            item[pick(KEYS)] = item.pop(pick([*item])) if item and rng.integers(2) else 0
        case "an item twice":
            item.insert(0, pick([*item, None]))
        case "another value":
            holder[key] = pick(VALUES)
        case "another type":
            item["type"] = pick(TYPES)
        case "in brackets":
            for _ in range(pick((1, 2, 50, 400))):
                holder[key] = pick(([holder[key]], {"type": "Track", "steps": holder[key]}))
        case "retyped":
            ways: list[Callable[[], Any]] = [lambda: str(item), lambda: {"value": item}]
            if isinstance(item, int):
                ways = [*ways, lambda: float(item), lambda: item << 40, lambda: -item]
            if isinstance(item, list):
                ways = [*ways, lambda: dict(enumerate(item)), lambda: item[::-1], lambda: item * 3]
            holder[key] = pick(ways)()
        case "near":
            holder[key] += pick((-2, -1, 1, 2))


TEXTS = ("cut", "another byte", "a number grown", "another file")


def of_text(rng: Rng, text: bytes, kind: str) -> bytes:
    at = int(rng.integers(len(text)))
    match kind:
        case "cut":
            return text[:at]
        case "another byte":
            return text[:at] + bytes([int(rng.integers(256))]) + text[at + 1 :]
        case "a number grown":
            digits = [n for n, byte in enumerate(text) if chr(byte).isdigit()]
            at = digits[int(rng.integers(len(digits)))]
            more = [b"9" * 30, b"9" * 5000, b"e400", b"e5", b".5"][int(rng.integers(5))]
            return text[: at + 1] + more + text[at + 1 :]
    files = [
        b"", b"null", b"[]", b"{}", b"0", b'"plan"', b'{"type": "Plan"}', b'{"type": "Memory"}',
        b'{"type": ["Plan"]}', b"\xff\xfe\x00", b"[" * NESTED, b"[" * NESTED + b"]" * NESTED,
        b'{"a":' * NESTED + b"0" + b"}" * NESTED, b"NaN", b"\xef\xbb\xbf" + text, text * 2,
        text.replace(b'"type"', b'"kind"'), text.decode().encode("utf-16"),
    ]  # fmt: skip
    return files[int(rng.integers(len(files)))]


def damaged(rng: Rng, plan: Plan) -> tuple[list[str], bytes]:
    """The kinds of damage, and the file: of the tree once or twice, or of the text."""
    tree = {"": json.loads(json.dumps(serialize.encoded(plan)))}
    if rng.random() < 0.3:
        text = json.dumps(tree[""], sort_keys=True, indent=1).encode()
        kind = str(rng.choice(TEXTS))
        return [kind], of_text(rng, text, kind)
    kinds = [str(kind) for kind in rng.choice([*TREES], int(rng.integers(1, 3)))]
    for kind in kinds:
        of_tree(rng, tree[""] if isinstance(tree[""], dict | list) else tree, kind)
    return kinds, json.dumps(tree[""]).encode()


@pytest.mark.ci
def test_readers_take_sound_plans() -> None:
    for subject in list(subjects().values())[::5]:
        assert not list(answers(subject.plan, subject, READERS))


@pytest.mark.parametrize(
    "changed",
    [
        lambda plan: replace(plan, tracks=(*plan.tracks, Track("idle", ()))),
        lambda plan: replace(plan, notes=(("bound_us", 1e9),)),
        lambda plan: replace(
            plan,
            memories=tuple(replace(each, name=f"other {each.name}") for each in plan.memories),
            buffers=tuple(replace(each, memory=f"other {each.memory}") for each in plan.buffers),
        ),
    ],
    ids=["a track without steps", "a bound without a card", "not the board's memories"],
)
def test_readers_of_what_no_strategy_makes(changed: Callable[[Plan], Plan]) -> None:
    subject = subjects()["herringbone"]
    assert not list(answers(changed(subject.plan), subject, READERS))


@pytest.mark.parametrize(("number", "least"), quick(0, [(1, 15), (100, 1000)], ci=1))
def test_readers_of_mutants(number: int, least: int) -> None:
    """``number`` of each subject, or fewer."""
    shown = 0
    for name, subject in subjects().items():
        rng = np.random.default_rng([9, *name.encode()])
        for _ in range(number):
            if plan := mutant(rng, subject.plan, subject.graph):
                assert not list(answers(plan, subject, READERS)), (name, plan)
                shown += 1
    assert shown > least


SLOW = {"page", "generate avr", "generate cortex_m", "generate host"}
"""Readers that see one plan in eight."""


@pytest.mark.parametrize(("seed", "number", "least"), quick(0, [(1, 6, 90), (2, 100, 1500)], ci=1))
def test_damaged_files(seed: int, number: int, least: int, tmp_path: Path) -> None:
    """What became of ``number`` damages of each subject's file."""
    path = tmp_path / "plan.json"
    found: Counter[str] = Counter()
    for name, subject in subjects().items():
        rng = np.random.default_rng([seed, *name.encode()])
        for _ in range(number):
            kinds, content = damaged(rng, subject.plan)
            path.write_bytes(content)
            found.update(kinds)
            try:
                plan = serialize.load(path)
            except ThimbleError as error:
                assert str(error) and "\n" not in str(error), (kinds, str(error))
                found["refused"] += 1
                continue
            found["a plan"] += 1
            chosen = {n: r for n, r in READERS.items() if n not in SLOW or rng.random() < 0.125}
            assert not list(answers(plan, subject, chosen)), (name, kinds, content)
    assert {*TREES, *TEXTS} <= found.keys() and found["a plan"] > found["refused"] / 20
    assert found["refused"] + found["a plan"] >= least
