"""Runs test images where the config says and writes down what was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.artifacts import Arrays
from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware
from pipeline.targets import card, flash, host, native, qemu, simavr
from pipeline.targets.layers import REST, of_functions
from pipeline.targets.runs import Images, Runs, apart, together

Simulator = Callable[[Path, Mapping[str, Any], Hardware, Images], Runs]
SIMULATORS: dict[str, Simulator] = {"simavr": simavr.run, "native": native.run, "qemu": qemu.run}


def measure(
    target: Mapping[str, Any],
    build: Path,
    size: Mapping[str, Any],
    hardware: Hardware,
    images: Images,
    layers: Sequence[str] = (),
) -> tuple[dict[str, Any], Arrays]:
    """Return the contents of ``device.json`` and ``outputs.npz``.

    Args:
        target: the config group: ``name`` (simulate, host, flash), ``images``, ``port``,
            ``dry_run``.
        build: folder with ``firmware.elf``, ``firmware.hex`` and ``host``.
        size: of ``size.json``.
        images: the whole test set, (n, h, w, c) uint8: the native program runs all of it, the
            device the first ``target.images``.
        layers: what the network's are called, in order.
    """
    asked = int(target["images"])
    if asked < 0:
        raise ThimbleError(f"target.images={asked}: give 0 or more")
    frames, in_turn = _in_flight(build, images)
    size = {**size, "in_turn": in_turn}
    native = host.infer(build / "host", together(images, frames))
    given = together(images[:asked], frames)
    runs, written = _run(target, build, size, hardware, given, native[: len(given)])
    beside = card.counted(runs.modelled_cycles, layers)
    native, runs = apart(native, frames)[: len(images)], runs.each(frames, asked)
    counted = None if runs.stack_bytes is None else size["statics_bytes"] + runs.stack_bytes
    report = {
        "target": target["name"],
        "images": len(runs.outputs),
        "statics_bytes": size["statics_bytes"],
        "stack_bytes": runs.stack_bytes,
        "painted_stack_bytes": runs.painted_stack_bytes,
        "sram_bytes": counted,
        "latency_cycles": _spread(runs.latency_cycles),
        "compute_cycles": _spread(runs.compute_cycles),
        "unskipped_cycles": runs.unskipped_cycles,
        "invoke_cycles": _spread(runs.invoke_cycles),
        "modelled_cycles": _modelled(runs),
        "arena_touched_bytes": runs.arena_touched_bytes,
        "layer_cycles": _by_layer(runs, layers),
        "beside_card": beside,
        "card_cycles": _card_cycles(runs, layers),
        "host": {"images": len(images)},
        "flasher": said(written, bool(target.get("dry_run"))) if written else None,
    }
    arrays = {
        "device_outputs": runs.outputs,
        "host_outputs": native,
        "latency_cycles": runs.latency_cycles,
        "compute_cycles": runs.compute_cycles,
    }
    return {key: value for key, value in report.items() if value is not None}, arrays


def _in_flight(build: Path, images: Images) -> tuple[int, bool]:
    """Count the frames that the program in ``build`` computes together, and ask whether each
    follows the one before."""
    with host.runnable(build / "host") as program:
        who = host.identify(program)
    frames, rest = divmod(who.input_bytes, max(1, prod(images.shape[1:])))
    return 1 if rest else max(1, frames), who.in_turn


def _run(
    target: Mapping[str, Any],
    build: Path,
    size: Mapping[str, Any],
    hardware: Hardware,
    images: Images,
    native: npt.NDArray[Any],
) -> tuple[Runs, flash.Written | None]:
    name = target["name"]
    if name == "host":
        return Runs(native), None
    if name == "flash":
        runs, written = flash.run(build, target, hardware, images)
        return runs or Runs(native[:0]), written
    if hardware.simulator not in SIMULATORS:
        raise ThimbleError(
            f"hardware {hardware.name}: no simulator {hardware.simulator!r}; have "
            f"{', '.join(SIMULATORS)}; try target=host"
        )
    return SIMULATORS[hardware.simulator](build, size, hardware, images), None


def said(written: flash.Written, dry_run: bool) -> dict[str, Any]:
    """Return the flasher's command and what it writes, for a person."""
    memory = f"{written.memory_bytes:,} B of flash from {written.memory_start:#x} on"
    span = f"{written.bytes:,} B to {written.start:#x} ... {written.stop - 1:#x}"
    return {"command": written.text, "writes": f"{span}, in {memory}", "dry_run": dry_run}


def _spread(cycles: npt.NDArray[np.int64]) -> dict[str, int] | None:
    """Smallest, median (the lower of two) and largest, whole cycles; None without any."""
    if not len(cycles):
        return None
    low, median, high = int(cycles.min()), int(cycles[_median(cycles)]), int(cycles.max())
    return {"min": low, "median": median, "max": high}


def _median(cycles: npt.NDArray[np.int64]) -> int:
    """Return which image takes the median, the lower of two; of equal ones the first."""
    return int(np.argsort(cycles, kind="stable")[(len(cycles) - 1) // 2])


def _modelled(runs: Runs) -> dict[str, Any] | None:
    """Leave out counts of single functions, which those of the layers say."""
    found, known = runs.modelled_cycles, ("functions", "invoke_functions", "calls")
    return found and {name: value for name, value in found.items() if name not in known}


def _card_cycles(runs: Runs, layers: Sequence[str]) -> int | None:
    """Count the median inference's cycles that the core takes for a card's transfers, or waits for
    them; None where nothing counts them, or no card is used."""
    counted = _functions(runs)
    return counted and card.own_cycles(*counted, layers)


def _functions(runs: Runs) -> tuple[dict[str, int], int] | None:
    """The cycles of each function in the median inference, and of all; None without functions."""
    modelled = runs.modelled_cycles or {}
    if "functions" in modelled:
        return modelled["functions"], modelled["compute_cycles"]
    if not (runs.functions and len(runs.compute_cycles)):
        return None
    median = _median(runs.compute_cycles)
    cycles = dict(zip(runs.functions, runs.function_cycles[median].tolist(), strict=True))
    return cycles, int(runs.compute_cycles[median])


def _by_layer(runs: Runs, layers: Sequence[str]) -> list[tuple[str, int]] | None:
    """Cycles of each layer in the inference whose compute cycles are the median, which they add up
    to, in the order they are computed; None where no target looks at layers."""
    counted, beside = _functions(runs), card.counted(runs.modelled_cycles, layers)
    if counted and beside:  # whose kernels share what no layer owns
        found = [(name, sum(n for _, n, _ in calls)) for name, calls in beside["kernels"].items()]
        return [*found, (REST, counted[1] - sum(n for _, n in found))]
    if counted:
        return of_functions(*counted, layers) or None
    if not len(runs.compute_cycles) or not runs.layers or not len(runs.layer_cycles):
        return None
    cycles = runs.layer_cycles[_median(runs.compute_cycles)].tolist()
    return list(zip(runs.layers, cycles, strict=True))
