"""The hardware node of a config as a ``Hardware``.

Apart from ``config``, so that a stage that knows no hardware does not depend on its fields.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from pipeline.config import frozen
from pipeline.hardware import Card, FlashTiming, Hardware, MemoryRegion, Power, Toolchain, Uart


def hardware(node: Mapping[str, Any]) -> Hardware:
    known = {field.name for field in dataclasses.fields(Hardware)}
    values = {key: frozen(item) for key, item in node.items() if key in known}
    values["toolchain"] = Toolchain(**frozen(node["toolchain"]))
    values["power"] = Power(**frozen(node["power"]))
    values["regions"] = tuple(MemoryRegion(**frozen(r)) for r in node.get("regions") or ())
    values["flash_timing"] = FlashTiming(**frozen(node.get("flash_timing") or {}))
    values["uart"] = Uart(**frozen(node.get("uart") or {}))
    values["card"] = Card(**frozen(node.get("card") or {}))
    return Hardware(**values)
