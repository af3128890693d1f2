"""Say what one came for, in large letters: fits or not, how right, how fast, at what energy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.metrics import NO_LIMIT
from pipeline.words import energy, large, memory, number, time, valued


@dataclass(frozen=True)
class Figure:
    """One of the large figures: ``key`` is its metric, ``how`` what it counts and how it was
    obtained."""

    key: str
    title: str
    value: str
    beside: str
    how: str


@dataclass(frozen=True)
class Verdict:
    """``kind`` is the status; ``said`` what it comes to, ``advice`` what to try."""

    kind: str
    word: str
    said: str
    advice: str = ""


def verdict(schedule: Mapping[str, Any], metrics: Mapping[str, Any]) -> Verdict:
    """Return the verdict of the plan, or of the build and the run where there were some."""
    found = {**schedule, **metrics}
    if found.get("status") == "failed":
        return Verdict("failed", "Wrong", found.get("error", "the run failed"))
    needed, available = found.get("needed_bytes", 0), found.get("available_bytes", NO_LIMIT)
    if metrics.get("sram_bytes") and metrics.get("sram_limit_bytes"):
        needed, available = metrics["sram_bytes"], metrics["sram_limit_bytes"]
    where = found.get("resource", "SRAM") if not metrics else "SRAM"
    of = f"{where} needs {number(needed)} of {number(available)} B"
    if found.get("status") == "infeasible":
        advice = found.get("advice", "")
        return Verdict("infeasible", "Does not fit", f"{of}: {number(needed - available)} B too "
                       "many", advice[:1].upper() + advice[1:])  # fmt: skip
    if available >= NO_LIMIT:
        return Verdict("ok", "Fits", "a computer's memory limits nothing")
    return Verdict("ok", "Fits", f"{of}: {number(available - needed)} B are left")


def figures(
    schedule: Mapping[str, Any], metrics: Mapping[str, Any], weights: Mapping[str, float]
) -> tuple[Figure, ...]:
    """Return those that are known so far.

    Args:
        weights: bytes in each memory (``memories.constants``).
    """
    return tuple(_figures({**schedule, **metrics}, bool(metrics), weights))


def _figures(found: Mapping[str, Any], ran: bool, weights: Mapping[str, float]) -> Iterator[Figure]:
    yield Figure(
        "pmu_bytes", "Peak memory", valued("pmu_bytes", found.get("pmu_bytes", 0)),
        f"arena {number(found.get('arena_bytes', 0))} B",
        "Activations live at once, with the input"
        + (", and weights while they are in SRAM" if "makespan_us" in found else "")
        + ", as planned and proved; the arena is what is linked, with scratch and alignment.",
    )  # fmt: skip
    if ran:
        yield from _accuracy(found)
    yield from _time(found, ran)
    if found.get("energy_uj"):
        source = "core and card" if "states_us" in found else "the core"
        yield Figure(
            "energy_uj", "Energy", energy(found["energy_uj"]), "an inference",
            f"Modelled: time of {source} in each state times its documented power.",
        )  # fmt: skip
    if not ran:
        yield Figure(
            "weight_bytes", "Weights and biases", valued("weight_bytes", found["weight_bytes"]),
            _where(weights), "Constants of the network, after lossless passes.",
        )  # fmt: skip
        again = found["macs_executed"] - found["macs"]
        yield Figure(
            "macs_executed", "Work", large(found["macs_executed"]),
            "multiply–accumulates, "
            + (f"{large(again)} of them again" if again > 0 else "each once"),
            "Of an inference, padding and recomputation included.",
        )  # fmt: skip


def _where(weights: Mapping[str, float]) -> str:
    """Say in which memory weights are; how much in each, where there are several."""
    said = [
        (f"{number(size)} B " if len(weights) > 1 else "")
        + f"{'on' if name == 'card' else 'in'} {memory(name)}"
        for name, size in weights.items()
    ]
    return ", ".join(said)


def _accuracy(found: Mapping[str, Any]) -> Iterator[Figure]:
    steps = [
        f"{name} {valued(key, found[key])}"
        for name, key in (("float", "accuracy_float"), ("integer", "accuracy_int"),
                          ("device", "accuracy_device"))
        if found.get(key) is not None
    ]  # fmt: skip
    if found.get("random_weights") or "accuracy_int" not in found:
        wrong, images = found.get("mismatches_device"), found.get("images_device")
        if images:
            yield Figure(
                "mismatches_device", "Same outputs", f"{images - (wrong or 0)} of {images}",
                "images on the device",
                "Every output value compared with the integer reference. The weights are random, "
                "so there is no accuracy to speak of."
                if found.get("random_weights") else
                "Every output value compared with the integer reference.",
            )  # fmt: skip
        return
    tested = f"{number(found['images_host'])} test images" if found.get("images_host") else ""
    yield Figure(
        "accuracy_int", "Accuracy", valued("accuracy_int", found["accuracy_int"]),
        " → ".join(steps),
        f"Of {tested or 'the test images'}; on the device of the first "
        f"{number(found.get('images_device', 0))}, of which {found.get('mismatches_device', 0)} "
        "differ in any output from the integer reference.",
    )  # fmt: skip


def _time(found: Mapping[str, Any], ran: bool) -> Iterator[Figure]:
    if "makespan_us" in found:
        planned = time(found["makespan_us"] / found["frames"])
        counted = time(found["latency_us"]) if "latency_us" in found else ""
        beside = f"{found['overhead_pct']:.1f} % over unlimited SRAM"
        yield Figure(
            "latency_us", "Time", counted or planned,
            f"the plan says {planned}, {beside}" if counted else beside,
            "Core and card simulated side by side; both are modelled, nothing was measured.",
        )  # fmt: skip
    elif found.get("latency_us"):
        low = found.get("latency_low_us")
        beside = f"{time(low)} to {time(found['latency_high_us'])}" if low else ""
        if found.get("latency_max_us", 0) > found["latency_us"]:
            beside = f"{time(found['latency_max_us'])} for the slowest image"
        error = found.get("latency_error_pct")
        how = "Counted cycle by cycle on the simulated chip, in the median inference."
        if low:
            how = "Modelled from the instructions executed; " + (
                f"within {error:g} % of measurements of other programs."
                if error else "this core's model is not validated."
            )  # fmt: skip
        yield Figure(
            "latency_us", "Latency", time(found["latency_us"]), beside,
            f"From the last input byte to the first output byte. {how}",
        )  # fmt: skip
    elif found.get("modelled_us") and not ran:
        yield Figure(
            "modelled_us", "Computing", time(found["modelled_us"]), "modelled, without the code",
            "All work of the core, feeding included: what the plan's kernels say that they take, "
            "and their weights wait for.",
        )  # fmt: skip
    elif found.get("instructions"):
        yield Figure(
            "instructions", "Instructions", number(found["instructions"]), "an inference",
            "Counted by the simulator in nn_init, nn_feed and nn_invoke, in the median inference.",
        )  # fmt: skip
