"""Facts known of boxes say the same as a look at every cell."""

from types import SimpleNamespace

import numpy as np
import pytest

from pipeline.graph.tensor import Box
from pipeline.hardware import Memory
from pipeline.plan.elements import Elements
from pipeline.plan.known import Known
from pipeline.plan.tokens import COMPLETE, Tokens
from pipeline.plan.vocabulary import Affine, Buffer, PlanError
from pipeline.plan.zones import Zones

RAM = Memory("ram", "ram", 200)


def drawn_buffer(rng: np.random.Generator, name: str) -> Buffer:
    """Rows, in a ring or not, columns in one or not; most of them overlap others."""
    shape = tuple(int(n) for n in rng.integers(1, 7, 2))
    rings = tuple(int(rng.integers(1, n + 1)) if rng.random() < 0.5 else 0 for n in shape)
    bits = int(rng.choice([4, 8]))
    width = min(shape[1], rings[1] or shape[1]) * bits // 4
    place = Affine(2 * int(rng.integers(0, 100)), (width, bits // 4), rings)
    role = "accumulator" if rng.random() < 0.15 else "activation"
    copies = int(rng.integers(1, 3)) if role == "activation" else 1
    return Buffer(name, name[0], "ram", shape, bits, place, role, copies=copies, copy_stride=40)


def drawn_box(rng: np.random.Generator, buffer: Buffer) -> Box:
    """Most often no larger than the rings."""
    box = list[tuple[int, int]]()
    for extent, ring in zip(buffer.shape, buffer.wrap, strict=True):
        most = ring if ring and rng.random() < 0.95 else extent
        size = int(rng.integers((most + 1) // 2, most + 1))
        low = int(rng.integers(extent - size + 1))
        box.append((low, low + size))
    return tuple(box)


@pytest.mark.parametrize("seed", range(60))
def test_boxes_and_cells_say_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    buffers = [drawn_buffer(rng, f"{'abc'[n % 3]}{n}") for n in range(rng.integers(1, 4))]
    plan = SimpleNamespace(memories=(RAM,), buffers=buffers, frames=2)
    quick, slow = (Tokens(plan, Zones(plan), set()) for _ in "ab")  # type: ignore[arg-type]
    monkeypatch.setattr(slow.known, "put", lambda elements: False)
    known = 0
    for _ in range(100):
        buffer = buffers[rng.integers(len(buffers))]
        place = buffer.at(int(rng.integers(2)))
        some = Elements.of(place, drawn_box(rng, place), int(rng.random() < 0.1))
        kind = rng.random()
        if kind < 0.45:
            sums = COMPLETE if buffer.role == "activation" else rng.integers(0, 3, some.shape)
            assert quick.write(some, sums) == slow.write(some, sums)
        elif kind < 0.5:
            quick.destroy(some), slow.destroy(some)
        else:
            known += Known.holds(quick.known, some)
            assert outcome(quick, some) == outcome(slow, some)
    for buffer in buffers:
        every = Elements.of(buffer.at(0), buffer.box), Elements.of(buffer.at(1), buffer.box)
        assert [quick.empty(each) for each in every] == [slow.empty(each) for each in every]
        assert [outcome(quick, each) for each in every] == [outcome(slow, each) for each in every]
    assert known or seed


def outcome(tokens: Tokens, elements: Elements) -> object:
    """Return what a check finds, or says."""
    try:
        found = tokens.check(elements, lambda: "step")
    except PlanError as error:
        return str(error)
    return found if isinstance(found, int) else found.tolist()
