"""The metrics: their names, the same in JSON, MLflow and the report (DESIGN.md §5), what they are
called for a person, what they count, and how their values are written."""

from __future__ import annotations

from typing import Any

METRICS = {
    "metrics_version": ("version of these figures", "what their names mean"),
    "accuracy_float": ("accuracy of the float network", "test images that it labels rightly"),
    "accuracy_int": ("accuracy of the integer network", "of all test images, on this computer"),
    "accuracy_device": ("accuracy on the device", "of the images that the device ran"),
    "agreement_float": ("same label as the float network", "share of the test images"),
    "images_float": ("images given to the float network", ""),
    "checked_elements": ("elements written as the interpreter does", "target.check=layers"),
    "images_device": ("images run on the device", ""),
    "mismatches_device": ("device images with any other output", "against the integer reference"),
    "images_reference": ("images run by the integer reference", ""),
    "images_host": ("images run by the native program", "the same C, compiled for this computer"),
    "mismatches_host": ("native images with any other output", "against the integer reference"),
    "pmu_bytes": ("peak of the activations", "with the input, without scratch and weights"),
    "state_bytes": ("state", "of the peak: what stays from call to call"),
    "lower_bound_bytes": ("lower bound of the peak", "proved; nothing computed twice"),
    "above_bound_pct": ("peak above the bound", "0: no plan needs less"),
    "liveness_bytes": ("live at once", "scratch included: no placement needs less"),
    "arena_bytes": ("arena", "as planned, with scratch and alignment"),
    "linked_bytes": ("static data and stack's bound", "of the linked program"),
    "accumulate_layers": ("layers whose sums are accumulated", "in loops over channels"),
    "stack_bytes": ("stack", "measured on a simulator, else the build's bound"),
    "sram_bytes": ("SRAM used", "static data and the deepest stack"),
    "planned_sram_bytes": ("SRAM needed, as planned", "arena, statics and a usual stack"),
    "sram_limit_bytes": ("SRAM of the board", ""),
    "flash_bytes": ("flash used", "program and constants"),
    "planned_flash_bytes": ("flash needed, as planned", "constants, and code by its text"),
    "flash_limit_bytes": ("flash of the board", ""),
    "weight_bytes": ("weights and biases", "after lossless passes"),
    "macs": ("multiply–accumulates of the network", "of convolutions and dense layers"),
    "macs_executed": ("multiply–accumulates executed", "recomputation and padding included"),
    "cycles": ("cycles of an inference", "feeding the input included"),
    "instructions": ("instructions of an inference", "feeding the input included"),
    "instructions_over_ordinary": ("instructions over ordinary execution's", "a ratio"),
    "pmu_over_ordinary": ("peak over ordinary execution's", "a ratio"),
    "latency_us": ("latency", "from the last input byte to the first output byte"),
    "latency_max_us": ("latency of the slowest image", ""),
    "latency_no_zeros_us": (
        "latency without zeros",
        "of an image in which no activation is 0: products with 0 are skipped",
    ),
    "latency_low_us": ("latency, low end of the model", ""),
    "latency_high_us": ("latency, high end of the model", ""),
    "latency_error_pct": ("largest error of the model", "where it was compared with measurements"),
    "proof_machine": ("proof of the machine code", "complete, bounded, or none"),
    "proof_said": ("what that proves", ""),
    "worst_instructions": ("most instructions", "after the last input byte, for every input"),
    "wcet_cycles": ("most cycles", "after the last input byte, for every input; modelled"),
    "wcet_us": ("longest time", "after the last input byte, for every input; modelled"),
    "modelled_us": ("modelled time of the core", "as planned, by the kernels' cycles"),
    "compute_us": ("time of the core", "feeding the input included"),
    "sound_us": ("length of one sound", ""),
    "realtime_factor": ("real-time factor", "computing over the sound's length; below 1 keeps up"),
    "energy_second_uj": ("energy of a second of sound", "modelled, while the core computes"),
    "macs_window": ("multiply–accumulates of a whole window", "of which each call makes some"),
    "energy_uj": ("energy of an inference", "modelled: the core's time times documented power"),
    "energy_compute_uj": ("energy while the core computes", "modelled"),
    "energy_io_uj": ("energy while the card works", "modelled"),
    "energy_both_uj": ("energy while both work", "modelled"),
    "energy_idle_uj": ("energy while both wait", "modelled"),
    "io_us": ("time of the card", "its transfers in an inference"),
    "sealing_us": ("time for security", "the core seals and opens what passes"),
    "makespan_us": ("planned time", "core and card side by side"),
    "overhead_pct": ("overhead over unlimited SRAM", "planned time beyond computing alone"),
    "throughput_fps": ("inferences a second", ""),
    "throughput_loss_pct": ("time in which the core waits", "share of the planned time"),
    "energy_overhead_pct": ("energy over computing alone", "core and card"),
    "run_energy_overhead_pct": ("energy over computing alone, as run", "with counted cycles"),
    "run_overhead_pct": ("overhead over unlimited SRAM, as run", "with counted cycles"),
    "run_throughput_fps": ("inferences a second, as run", "with counted cycles"),
    "run_throughput_loss_pct": ("time in which the core waits, as run", "share of the run's time"),
    "card_read_bytes": ("read from the card", "an inference"),
    "card_write_bytes": ("stored on the card", "an inference"),
    "maps_stay_bytes": ("SRAM in which all feature maps stay", "swap's stack and driver included"),
    "weights_stay_bytes": ("SRAM in which all weights stay, too", "those in flash not counted"),
    "wear": ("written to the card's cells", "an inference, at least"),
    "wear_worst": ("written to the card's cells, at most", "an inference, in whole erase units"),
    "wear_years_first_failure": ("years to the first failing cell", "at most"),
    "wear_years_first_failure_worst": ("fewest years to the first failing cell", ""),
    "wear_years_half": ("years until half of the cells failed", "at most"),
    "wear_years_half_worst": ("fewest years until half of the cells failed", ""),
    "write_amplification_block": ("stored over written, in blocks", ""),
    "write_amplification_erase": ("stored over written, in erase units", "at most"),
}
"""Metric -> (what it is called, what it counts).

Every number says in its name what it counts. Bytes may have fractions: 4-bit elements.

``agreement_float`` is the share of test images, of the first ``images_float``, to which the
generated C gives the label that the float network gives before it is quantized to 8 bits.

``cycles``, ``instructions``, ``compute_us`` and ``energy_uj`` are of all CPU work of an inference,
the feeding of its input included; ``latency_us`` is from its last byte on.

In a sweep that also runs ``strategy=ordinary`` on the same network, ``…_over_ordinary`` are a job's
figures divided by that one's.

``metrics.json`` also has ``layers``, a list: see ``pipeline.measure.by_layer``; and where the
network learnt nothing (``train=random``) ``random_weights``: then no accuracy means anything. Where
its accuracy is no better than chance ``warnings`` says so, see ``pipeline.measure.warnings``.

``liveness_bytes``, ``arena_bytes``, ``linked_bytes`` and ``sram_bytes`` are four numbers for one
RAM, see ``pipeline.report.ram``. ``latency_error_pct`` is the largest error of a modelled latency
where its model was compared with measurements; a modelled latency without it was not.

``wear`` is the bytes an inference writes to a card's cells, the input that is fed included, at
least (whole blocks) and ``_worst`` (whole erase units, ``pipeline.timing.wear``): 0 without a card,
which then has no years to last. ``write_amplification_…`` divides them by what was to be written.
Of a plan with a card ``energy_uj`` is the core's and the card's, and the sum of four states: the
core computes, the card moves, both or neither do; without one it is all ``energy_compute_uj``.
``makespan_us`` is the plan's time of all its frames, ``latency_us`` beside it and ``run_…`` the
run's: the calls of kernels as the simulated core counted them, what the card charges, and no
polling.
``…_stay_bytes`` are the SRAM from which on no feature map, or no weight, has to be swapped.
"""


MORE = ("accuracy_", "agreement_", "throughput_fps", "wear_years_")
"""Prefixes of metrics of which more is better; of the others less is."""

MEMORIES = {
    "sram": "SRAM",
    "sdram": "external SDRAM",
    "flash": "flash",
    "quadspi": "external flash",
    "card": "the card",
    "dtcm": "DTCM",
    "itcm": "ITCM",
    "ccm": "CCM",
}
"""Memory -> what it is called; of others their names."""

PASSES = {
    "constants": "what is constant computed beforehand",
    "dead_channels": "channels left out that decide nothing",
    "fold_pad": "padding made part of its layer",
    "fold_reshape": "reshapes left out",
    "fold_mixed": "convolutions of several kernels over parts of the channels made one",
    "fold_tables": "functions of one value made one table",
}
"""Lossless pass -> what it did."""


def memory(name: str) -> str:
    return MEMORIES.get(name, name)


def called(key: str) -> str:
    return METRICS[key][0] if key in METRICS else key


def counts(key: str) -> str:
    return METRICS[key][1] if key in METRICS else ""


def valued(key: str, value: Any) -> str:
    """Return a metric with its unit; what is no number as it is."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if key.startswith(("accuracy_", "agreement_")):
        return f"{100 * value:.2f} %"
    if key.endswith("_us"):
        return time(value)
    if key.endswith("_uj"):
        return energy(value)
    if key.endswith("_bytes") or key in ("wear", "wear_worst"):
        return f"{number(value)} B"
    return f"{number(value)} %" if key.endswith("_pct") else number(value)


def number(value: Any) -> str:
    """Thousands apart; fractions only where there are any."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.4g}" if abs(value) < 10 else f"{value:,.1f}"


def time(us: float) -> str:
    """Say it in the unit that suits it."""
    for factor, unit in ((1e6, "s"), (1e3, "ms")):
        if us >= factor:
            return f"{number(us / factor)} {unit}"
    return f"{us:.3g} µs"


def energy(uj: float) -> str:
    for factor, unit in ((1e6, "J"), (1e3, "mJ")):
        if uj >= factor:
            return f"{number(float(f'{uj / factor:.3g}'))} {unit}"
    return f"{uj:.3g} µJ"


def large(value: float) -> str:
    """``301 million``: three digits, in words."""
    for factor, word in ((1e9, "billion"), (1e6, "million")):
        if value >= factor:
            return f"{float(f'{value / factor:.3g}'):g} {word}"
    return number(value)


def si(value: float, unit: str = "B") -> str:
    """``15.1 MB``: three digits, powers of 1000."""
    prefixes = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0), ("m", 1e-3))
    for prefix, factor in prefixes:
        if abs(value) >= factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value / 1e-6:.3g} µ{unit}" if value else f"0 {unit}"
