"""The metrics of a finished run, under the names of DESIGN.md §5; every number says what it counts.

The integer reference (``Graph.outputs``) on the whole test set is what everything is compared with:
the native program on the same set, the device on the first images of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.hardware import Hardware
from pipeline.plan.serialize import plan_hash
from pipeline.plan.vocabulary import Plan

Array = npt.NDArray[Any]


def metrics(
    graph: Graph,
    hardware: Hardware,
    schedule: Mapping[str, Any],
    size: Mapping[str, Any],
    device: Mapping[str, Any],
    outputs: Mapping[str, Array],
    images: Array,
    labels: Array,
) -> dict[str, Any]:
    """The content of metrics.json, but for the accuracy in float, which training knows.

    Where the target has no stack to look at, ``stack_bytes`` and ``sram_bytes`` are the build's
    bounds.

    Args:
        schedule, size, device: the reports of those stages.
        outputs: ``outputs.npz``: ``device_outputs`` and ``host_outputs``, (n, outputs).
        images: the test set, (n, h, w, c) uint8.
        labels: (n,).

    Raises:
        ThimbleError: when the native program or the device answers for other images than it got.
    """
    reference = graph.outputs(images.astype(np.int64)).reshape(len(images), -1)
    on_device, on_host = outputs["device_outputs"], outputs["host_outputs"]
    if len(on_host) != len(images) or on_device.shape[1:] != reference.shape[1:]:
        raise ThimbleError(
            f"outputs.npz has {len(on_host)} answers for {len(images)} images: "
            "delete it and run the same command again"
        )
    found: dict[str, Any] = {
        "status": size["status"],
        "fits": size["status"] == "ok",
        "accuracy_int": accuracy(reference, labels),
        "images_host": len(on_host),
        "mismatches_host": mismatches(on_host, reference),
        "images_device": len(on_device),
        "card_read_bytes": 0,
        "card_write_bytes": 0,
        "wear": 0,
    }
    if len(on_device):
        found["accuracy_device"] = accuracy(on_device, labels[: len(on_device)])
        found["mismatches_device"] = mismatches(on_device, reference[: len(on_device)])
    if wrong := difference(found):
        found |= {"status": "failed", "error": wrong}
    for name in ("pmu_bytes", "arena_bytes", "weight_bytes", "macs", "macs_executed"):
        found[name] = schedule[name]
    found["weight_sram_bytes"] = (
        graph.weight_bytes if hardware.weight_memory == hardware.activation_memory else 0
    )
    for name in ("flash_bytes", "flash_limit_bytes", "sram_limit_bytes"):
        found[name] = size[name]
    found["stack_bytes"] = device.get("stack_bytes", size["stack_bound_bytes"])
    found["sram_bytes"] = device.get("sram_bytes", size["sram_bytes"])
    return found | timing(device, hardware)


def difference(found: Mapping[str, Any]) -> str:
    """In one line, how many of how many images have another answer than the reference; or ""."""
    said = [
        f"{found[f'mismatches_{where}']:,} of {found[f'images_{where}']:,} images {name}"
        for where, name in (("device", "on the device"), ("host", "in the native program"))
        if found.get(f"mismatches_{where}")
    ]
    if not said:
        return ""
    return f"the firmware's answers differ from the reference for {' and '.join(said)}"


def timing(device: Mapping[str, Any], hardware: Hardware) -> dict[str, Any]:
    """Of the median inference; nothing where no target counts cycles.

    ``cycles`` and ``compute_us`` are all CPU time, the feeding included; ``latency_us`` is last
    input byte in to first output byte out; neither counts waiting for the line. ``energy_uj`` is
    modelled: the compute time at the active power of ``hardware.power``.
    """
    if "compute_cycles" not in device:
        return {}
    cycles = device["compute_cycles"]["median"]
    compute_us = cycles / hardware.clock_hz * 1e6
    return {
        "cycles": cycles,
        "compute_us": compute_us,
        "latency_us": device["latency_cycles"]["median"] / hardware.clock_hz * 1e6,
        "energy_uj": hardware.power.active_uj(compute_us),
    }


def accuracy(outputs: Array, labels: Array) -> float:
    """The share of images whose largest output, the first of equals, is at the label."""
    return float((outputs.argmax(axis=1) == labels).mean())


def mismatches(outputs: Array, reference: IntArray) -> int:
    """Images with any differing output value."""
    return int((outputs.astype(np.int64) != reference).any(axis=1).sum())


def provenance(
    cfg: Mapping[str, Any], graph: Graph, plan: Plan, size: Mapping[str, Any]
) -> dict[str, str]:
    """What the report says about its own origin: the config's choices and the hashes they gave."""
    return {
        "hardware": str(cfg["hardware"]["title"]),
        "model": str(cfg["model"]["name"]),
        "data": str(cfg["data"]["name"]),
        "seed": str(cfg["seed"]),
        "weights in": str(cfg["hardware"]["weights_in"]),
        "graph": graph.hash,
        "plan": plan_hash(plan),
        "compiler": str(size.get("compiler", "")),
        "power model": str(cfg["hardware"]["power"]["source"]),
    }
