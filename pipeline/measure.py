"""The metrics of a finished run, under the names of DESIGN.md §5; every number says what it counts.

The integer reference (``Graph.outputs``) is what everything is compared with: the native program
on the test set, the device on the first images of it. For networks so large that the reference
would take minutes it computes the first images only; the native program speaks for the others.
Plans whose accumulators round (docs/decisions/0010) are compared with the interpreter instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.errors import ThimbleError
from pipeline.frames import answers
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.hardware import Hardware
from pipeline.metrics import METRICS_VERSION
from pipeline.plan.calibrate import rounds
from pipeline.plan.interpret import sequence
from pipeline.plan.serialize import plan_hash
from pipeline.plan.vocabulary import Plan

Array = npt.NDArray[Any]

REFERENCE_MACS = 4_000_000_000
"""Work of the reference, some seconds; at least ``REFERENCE_IMAGES`` are computed."""
REFERENCE_IMAGES = 8

MODELLED = ("latency_us", "median"), ("latency_low_us", "low"), ("latency_high_us", "high")
"""Metrics of cycles that are modelled."""

UNSAID = 0xFFFFFFFF
"""A board's cycles when they are more than its timer can say."""

STATES = tuple(f"energy_{state}_uj" for state in ("compute", "io", "both", "idle"))
SIMULATED = (
    *("io_us", "sealing_us", "makespan_us", "overhead_pct"),
    *("throughput_fps", "throughput_loss_pct"),
    *("card_read_bytes", "card_write_bytes", "maps_stay_bytes", "weights_stay_bytes"),
    *("wear", "wear_worst", "wear_years_first_failure", "wear_years_half"),
    *("wear_years_first_failure_worst", "wear_years_half_worst"),
    *("write_amplification_block", "write_amplification_erase", "energy_uj", *STATES),
    "energy_overhead_pct",
)
"""Metrics that the simulation of a plan with a card gives, and nothing measures."""


def metrics(
    graph: Graph,
    plan: Plan,
    hardware: Hardware,
    schedule: Mapping[str, Any],
    size: Mapping[str, Any],
    device: Mapping[str, Any],
    outputs: Mapping[str, Array],
    images: Array,
    labels: Array,
) -> dict[str, Any]:
    """Return the content of metrics.json, but for the accuracy in float, which training knows.

    Where the target has no stack to look at, ``stack_bytes`` and ``sram_bytes`` are the build's
    bounds.

    Args:
        schedule, size, device: the reports of those stages.
        outputs: ``outputs.npz``: ``device_outputs`` and ``host_outputs``, (n, outputs).
        images: the test set as the input tensor stores it, (n, *input shape).
        labels: (n,), or none: then there is no accuracy.

    Raises:
        ThimbleError: when the native program or the device answers for other images than it got.
    """
    reference = references(graph, plan, images)
    on_device, on_host = (answers(graph, outputs[f"{each}_outputs"]) for each in ("device", "host"))
    count = reference.shape[1]
    if len(on_host) != len(images) or on_device.shape[1:] != (count,):
        raise ThimbleError(
            f"outputs.npz has {len(on_host)} answers for {len(images)} images: "
            "delete it and run the same command again"
        )
    known = np.concatenate([reference, on_host[len(reference) :].astype(np.int64)])
    found: dict[str, Any] = {
        "metrics_version": METRICS_VERSION,
        "status": size["status"],
        "fits": size["status"] == "ok",
        "images_reference": len(reference),
        "images_host": len(on_host),
        "mismatches_host": mismatches(on_host, known),
        "images_device": len(on_device),
    }
    if len(labels):
        found["accuracy_int"] = accuracy(known, labels)
    if len(on_device):
        found["mismatches_device"] = mismatches(on_device, known[: len(on_device)])
        if len(labels):
            found["accuracy_device"] = accuracy(on_device, labels[: len(on_device)])
    if wrong := difference(found):
        found |= {"status": "failed", "error": wrong}
    sizes = ("pmu_bytes", "state_bytes", "arena_bytes", "weight_bytes", "macs", "macs_executed")
    found |= {name: schedule[name] for name in sizes if name in schedule}
    found["liveness_bytes"] = schedule["arena_bytes"] - schedule["arena_over_bound_bytes"]
    in_ram = hardware.weight_memory == hardware.stack_memory
    found["weight_sram_bytes"] = graph.weight_bytes if in_ram else 0
    for name in ("flash_bytes", "flash_limit_bytes", "sram_limit_bytes"):
        found[name] = size[name]
    if size["stack_bound_bytes"]:  # natively no stack is bounded
        found["stack_bytes"] = device.get("stack_bytes", size["stack_bound_bytes"])
        found["sram_bytes"] = device.get("sram_bytes", size["sram_bytes"])
        found["linked_bytes"] = size["sram_bytes"]
        found["statics_bytes"] = size["statics_bytes"]
        found["arena_in_sram"] = hardware.activation_memory == hardware.stack_memory
        if "stack_bytes" in device:
            found["stack_measured_bytes"] = device["stack_bytes"]
    if size.get("outside"):  # of memories outside of the chip: used, available
        found["outside"] = size["outside"]
    found |= timing(device, hardware)
    if "energy_uj" in found:  # of a core alone
        found |= dict.fromkeys(STATES, 0.0) | {STATES[0]: found["energy_uj"]}
    found |= {name: schedule[name] for name in SIMULATED if name in schedule}
    found |= beside_card(device, hardware)
    return found | by_layer(device, graph)


def float_network(graph: Graph, host: Array, says: IntArray, labels: Array) -> dict[str, Any]:
    """``agreement_float``: the share of images to which the generated C gives the float network's
    label, and that network's accuracy on the same.

    Args:
        host: ``host_outputs``, (n, outputs).
        says: the float network's labels of the first images, or none.
        labels: of the data set.
    """
    if not len(says):
        return {}
    ours = answers(graph, host[: len(says)]).argmax(axis=1)
    found: dict[str, Any] = {
        "images_float": len(says),
        "agreement_float": float((ours == says).mean()),
    }
    if len(labels):
        found["accuracy_float"] = float((says == labels[: len(says)]).mean())
    return found


def references(graph: Graph, plan: Plan, images: Array) -> IntArray:
    """(n, outputs) for the first n images: of the graph, or of a plan whose sums are rounded."""
    count = sum(graph.tensors[name].size for name in graph.outputs)
    if not len(images):
        return np.zeros((0, count), np.int64)
    if rounds(plan):
        frames = images[:REFERENCE_IMAGES].astype(np.int64)
        outputs = np.stack(list(sequence(plan, graph, frames)))
    else:
        checked = max(REFERENCE_IMAGES, REFERENCE_MACS // max(1, graph.macs))
        outputs = graph.evaluate(images[:checked].astype(np.int64))
    return outputs.reshape(-1, count)


def difference(found: Mapping[str, Any]) -> str:
    """Say in one line how many images of how many differ from the reference; "" for none."""
    said = [
        f"{found[f'mismatches_{where}']:,} of {found[f'images_{where}']:,} images {name}"
        for where, name in (("device", "on the device"), ("host", "in the native program"))
        if found.get(f"mismatches_{where}")
    ]
    if not said:
        return ""
    return f"the firmware's answers differ from the reference for {' and '.join(said)}"


def timing(device: Mapping[str, Any], hardware: Hardware) -> dict[str, Any]:
    """Return the figures of the median inference; nothing where no target counts cycles.

    ``cycles``, ``instructions`` and ``compute_us`` are all CPU work of an inference on every core,
    the feeding of its input included, and so is ``energy_uj``: that time at the active power of
    ``hardware.power``, where it is known. ``latency_us`` is last input byte in to first output byte
    out, without waiting for the line; where cycles are modelled with the model's band, and its
    error where that is known. ``latency_max_us`` is that of the slowest image (an activation of 0
    skips its products), ``latency_no_zeros_us`` that of one without any 0. A board's own timer
    counts nn_invoke alone, at the clock that it has after reset: a latency.
    """
    hz = hardware.clock_hz
    if counts := device.get("modelled_cycles"):
        cycles = counts["compute_cycles"]
        found: dict[str, Any] = {"instructions": counts["compute_instructions"]}
        found |= {name: counts[key] / hz * 1e6 for name, key in MODELLED}
        for name in {"error_pct", "evidence"} & counts.keys():
            found[f"latency_{name}"] = counts[name]
    elif "compute_cycles" in device:
        cycles, latency = device["compute_cycles"]["median"], device["latency_cycles"]
        found = {"latency_us": latency["median"] / hz * 1e6}
        found["latency_max_us"] = latency["max"] / hz * 1e6
        if "unskipped_cycles" in device:
            found["latency_no_zeros_us"] = device["unskipped_cycles"] / hz * 1e6
    else:
        invoked = device.get("invoke_cycles", {}).get("median", UNSAID)
        return {"latency_us": invoked / (hardware.uart.hz or hz) * 1e6} if invoked < UNSAID else {}
    compute_us = cycles / hz * 1e6
    found |= {"cycles": cycles, "compute_us": compute_us}
    known = hardware.power.active_ma
    return found | ({"energy_uj": hardware.power.active_uj(compute_us)} if known else {})


def beside_card(device: Mapping[str, Any], hardware: Hardware) -> dict[str, Any]:
    """``compute_us`` of a core that waits for a card, or makes its transfers itself, without that;
    ``io_us`` of one that makes them, as its cycles were counted; nothing elsewhere."""
    if "card_cycles" not in device:
        return {}
    counts, card = device.get("modelled_cycles"), device["card_cycles"]
    whole = counts["compute_cycles"] if counts else device["compute_cycles"]["median"]
    times = {"compute_us": whole - card} | ({} if hardware.card.dma else {"io_us": card})
    return {name: cycles / hardware.clock_hz * 1e6 for name, cycles in times.items()}


def by_layer(device: Mapping[str, Any], graph: Graph) -> dict[str, Any]:
    """``layers``: of the median inference {layer, macs, cycles, cycles_per_mac} each.

    The cycles, modelled where those are, add up to ``cycles``. What multiplies nothing (pooling,
    permutations of data at run time, what lies between the layers) has no ``cycles_per_mac``.
    """
    if "layer_cycles" not in device:
        return {}
    macs = {op.name: op.macs(graph.tensors) for op in graph.operators}
    rows = []
    for name, cycles in device["layer_cycles"]:
        row = {"layer": name, "macs": macs.get(name, 0), "cycles": cycles}
        each = {"cycles_per_mac": cycles / row["macs"]} if row["macs"] else {}
        rows.append(row | each)
    return {"layers": rows}


def accuracy(outputs: Array, labels: Array) -> float:
    """Return the share of images whose largest output, the first of equals, is at the label."""
    return float((outputs.argmax(axis=1) == labels).mean())


def warnings(found: Mapping[str, Any], labels: Array) -> dict[str, Any]:
    """``warnings``, a list of one line, where the network is no better than one that gives the most
    frequent of ``labels`` for every image; nothing where it is, or is not meant to be.

    Args:
        found: what ``metrics`` and training say.
    """
    counts = np.bincount(np.asarray(labels, np.int64))
    reached = found.get("accuracy_int")
    if reached is None or found.get("random_weights") or (counts > 0).sum() < 2:
        return {}
    chance, before = counts.max() / counts.sum(), found.get("accuracy_float", reached)
    if reached > chance:
        return {}
    said = (
        f"accuracy {reached:.2%} is no better than always answering the most frequent label "
        f"({chance:.2%}): "
    )
    if before > chance:
        said += (
            f"quantization lost what the float network knows ({before:.2%}); try another quantize, "
            "or check model.input_range"
        )
    else:
        said += (
            "the network has learnt nothing of this data; train it longer or at other rates "
            "(train), or check the labels and model.input_range"
        )
    return {"warnings": [said]}


def mismatches(outputs: Array, reference: IntArray) -> int:
    """Images with any differing output value."""
    return int((outputs.astype(np.int64) != reference).any(axis=1).sum())


def provenance(
    cfg: Mapping[str, Any], graph: Graph, plan: Plan, size: Mapping[str, Any]
) -> dict[str, str]:
    """Return what the report says of its own origin: the config's choices and their hashes."""
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
