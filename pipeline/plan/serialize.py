"""``plan.json``: a plan and back, byte-stable."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from pipeline import codec
from pipeline.artifacts import read_json, write_json
from pipeline.errors import ThimbleError
from pipeline.hardware import Memory
from pipeline.plan import vocabulary as v

CLASSES: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        *(v.Lin, v.Affine, v.Table, v.Buffer, v.Slice, v.Track, v.Plan, Memory),
        *(v.Compute, v.Clear, v.Finish, v.Move, v.Signal, v.Wait, v.Loop),
    )
}


def save(plan: v.Plan, path: Path) -> None:
    write_json(path, codec.encode(plan))


def load(path: Path) -> v.Plan:
    plan = codec.decode(read_json(path), CLASSES)
    if not isinstance(plan, v.Plan):
        raise ThimbleError(f"{path} does not hold a plan: run stage schedule again")
    return plan


def plan_hash(plan: v.Plan) -> str:
    """A short hash for provenance."""
    content = json.dumps(codec.encode(plan), sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]
