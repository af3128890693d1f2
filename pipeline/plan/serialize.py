"""``plan.json``: a plan and back, byte-stable."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from pipeline import codec
from pipeline.artifacts import read_json, write_json
from pipeline.errors import ThimbleError
from pipeline.hardware import Memory
from pipeline.plan import vocabulary as v

CLASSES: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        *(v.Lin, v.Affine, v.Rows, v.Blocks, v.Table, v.Buffer, v.Slice, v.Track, v.Plan, Memory),
        *(v.Compute, v.Clear, v.Finish, v.Move, v.Signal, v.Wait, v.Loop),
    )
}


OFTEN = {
    "copy": 0, "frame": 0, "copies": 1, "copy_stride": 0, "frames": 1, "kernel": "", "delay": 0,
    "held": [], "states": [],
}  # fmt: skip
"""Fields that are left out where they have these values."""


def encoded(plan: v.Plan) -> Any:
    return _brief(codec.encode(plan))


def _brief(content: Any) -> Any:
    if isinstance(content, list):
        return [_brief(item) for item in content]
    if isinstance(content, dict):
        kept = {k: item for k, item in content.items() if k not in OFTEN or item != OFTEN[k]}
        return {key: _brief(item) for key, item in kept.items()}
    return content


def save(plan: v.Plan, path: Path) -> None:
    write_json(path, encoded(plan))


def load(path: Path) -> v.Plan:
    """
    Raises:
        ThimbleError: the file is missing, or holds no plan that means anything.
    """
    plan = codec.decode(read_json(path), CLASSES)
    if not isinstance(plan, v.Plan):
        raise ThimbleError(f"{path} does not hold a plan: run stage schedule again")
    return plan


def plan_hash(plan: v.Plan) -> str:
    """Return a short hash for provenance."""
    content = json.dumps(encoded(plan), sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]
