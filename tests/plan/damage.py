"""Structural damages of ``plan.json``: of its text, and of the tree that it holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from math import inf, nan
from typing import Any

from pipeline.plan import serialize
from pipeline.plan.vocabulary import Plan
from tests.plan.mutations import Rng

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 1 << 31, 1 << 63, 10**30, 1.5, 0.0, -1e300, nan, inf, "", "x", "0",
    [], [[]], {}, [0], {"type": "Lin"}, {"type": "Plan"}, {"type": "Signal", "counter": "x"},
    {"type": None}, {"type": []}, {"type": "Nothing"}, {"type": "__class__"},
    "*/ abort(); /*", "\0", "\n",
)  # fmt: skip
"""What may stand in the place of anything."""

Place = tuple[Any, Any]
"""A dict or a list, and one of its keys or positions."""


def places(tree: Any) -> Iterator[Place]:
    """Everything within ``tree``."""
    for key, item in list(tree.items() if isinstance(tree, dict) else enumerate(tree)):
        yield tree, key
        if isinstance(item, dict | list):
            yield from places(item)


def of_kind(rng: Rng, tree: Any, *kinds: type) -> Place:
    """Any place that holds one of ``kinds``."""
    found = [(holder, key) for holder, key in places(tree) if isinstance(holder[key], kinds)]
    return found[int(rng.integers(len(found)))]


def key_left_out(rng: Rng, tree: Any) -> None:
    holder, key = of_kind(rng, tree, object)
    del holder[key]


def key_renamed(rng: Rng, tree: Any) -> None:
    """Or one more."""
    holder, key = of_kind(rng, tree, object)
    item = holder.pop(key) if rng.integers(2) else 0
    if isinstance(holder, dict):
        holder[rng.choice([f"{key}s", "", "type", "__post_init__", "copy", key.upper()])] = item


def item_doubled(rng: Rng, tree: Any) -> None:
    holder, key = of_kind(rng, tree, list)
    if holder[key]:
        holder[key].insert(0, holder[key][int(rng.integers(len(holder[key])))])


def replaced(rng: Rng, tree: Any) -> None:
    holder, key = of_kind(rng, tree, object)
    holder[key] = VALUES[int(rng.integers(len(VALUES)))]


def other_type(rng: Rng, tree: Any) -> None:
    holder, key = of_kind(rng, tree, dict)
    names = [*serialize.CLASSES, "Nothing", "plan", "Event", "Exception", "str"]
    holder[key]["type"] = names[int(rng.integers(len(names)))]


def wrapped(rng: Rng, tree: Any) -> None:
    """One more pair of brackets, or very many."""
    holder, key = of_kind(rng, tree, object)
    for _ in range(int(rng.choice([1, 2, 50, 400]))):
        holder[key] = [holder[key]] if rng.integers(2) else {"type": "Track", "steps": holder[key]}


def retyped(rng: Rng, tree: Any) -> None:
    """A number as text or as a fraction, text as a number, a list as a dict."""
    holder, key = of_kind(rng, tree, int, str, list)
    item = holder[key]
    ways: list[Callable[[], Any]] = [lambda: str(item), lambda: [item], lambda: {"value": item}]
    if isinstance(item, int):
        ways += [lambda: float(item), lambda: item << 40, lambda: -item, lambda: item + 1] * 2
    if isinstance(item, list):
        ways += [lambda: dict(enumerate(item)), lambda: item[::-1], lambda: item * 3]
    holder[key] = ways[int(rng.integers(len(ways)))]()


TREES: tuple[Callable[[Rng, Any], None], ...] = (
    key_left_out, key_renamed, item_doubled, replaced, replaced, other_type, wrapped, retyped, retyped,
)  # fmt: skip

NESTED = 200_000
"""Brackets in brackets, more than any stack takes."""


def text_cut(rng: Rng, text: bytes) -> bytes:
    return text[: int(rng.integers(len(text)))]


def byte_changed(rng: Rng, text: bytes) -> bytes:
    at = int(rng.integers(len(text)))
    return text[:at] + bytes([int(rng.integers(256))]) + text[at + 1 :]


def number_grown(rng: Rng, text: bytes) -> bytes:
    """A digit becomes thousands, or an exponent."""
    digits = [n for n, byte in enumerate(text) if chr(byte).isdigit()]
    at = digits[int(rng.integers(len(digits)))]
    more = [b"9" * 30, b"9" * 5000, b"e400", b"e5", b".5"][int(rng.integers(5))]
    return text[: at + 1] + more + text[at + 1 :]


def another_file(rng: Rng, text: bytes) -> bytes:
    """What a plan's file holds that is none."""
    files = [
        b"", b"null", b"[]", b"{}", b"0", b'"plan"', b'{"type": "Plan"}', b'{"type": "Memory"}',
        b'{"type": ["Plan"]}', b"\xff\xfe\x00", b"[" * NESTED, b"[" * NESTED + b"]" * NESTED,
        b'{"a":' * NESTED + b"0" + b"}" * NESTED, b"NaN", b"\xef\xbb\xbf" + text, text * 2,
        text.replace(b'"type"', b'"kind"'), text.decode().encode("utf-16"),
    ]  # fmt: skip
    return files[int(rng.integers(len(files)))]


TEXTS: tuple[Callable[[Rng, bytes], bytes], ...] = (
    text_cut, byte_changed, byte_changed, number_grown, another_file,
)  # fmt: skip


def damaged(rng: Rng, plan: Plan) -> tuple[str, bytes]:
    """The kind of damage, and the file: of the tree once or twice, or of the text."""
    tree = {"": json.loads(json.dumps(serialize.encoded(plan)))}
    if rng.random() < 0.3:
        change = TEXTS[int(rng.integers(len(TEXTS)))]
        return change.__name__, change(rng, json.dumps(tree[""], sort_keys=True, indent=1).encode())
    kinds = []
    for _ in range(int(rng.integers(1, 3))):
        damage = TREES[int(rng.integers(len(TREES)))]
        damage(rng, tree[""])
        kinds.append(damage.__name__)
    return " and ".join(kinds), json.dumps(tree[""]).encode()
