"""Structural damages of ``plan.json``: of its text, and of the tree that it holds."""

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
