"""The metrics' names, the same in JSON, MLflow and the report (DESIGN.md §5)."""

METRICS_VERSION = 2
"""What the names below mean; figures of two versions are not compared. Of version 1 ``cycles``,
``instructions`` and ``energy_uj`` of a Cortex-M were nn_invoke's alone, without the feeding."""

METRICS = (
    "metrics_version",
    "accuracy_float",
    "accuracy_int",
    "accuracy_device",
    "agreement_float",
    "images_float",
    "images_device",
    "mismatches_device",
    "images_reference",
    "images_host",
    "mismatches_host",
    "pmu_bytes",
    "liveness_bytes",
    "arena_bytes",
    "linked_bytes",
    "accumulate_layers",
    "stack_bytes",
    "sram_bytes",
    "sram_limit_bytes",
    "flash_bytes",
    "flash_limit_bytes",
    "weight_bytes",
    "macs",
    "macs_executed",
    "cycles",
    "instructions",
    "instructions_over_ordinary",
    "pmu_over_ordinary",
    "latency_us",
    "latency_max_us",
    "latency_no_zeros_us",
    "latency_low_us",
    "latency_high_us",
    "latency_error_pct",
    "compute_us",
    "sound_us",
    "realtime_factor",
    "windows",
    "new_us",
    "kept_bytes",
    "macs_window",
    "macs_new",
    "cycles_window",
    "cycles_new",
    "cycles_new_10ms",
    "realtime_factor_new",
    "energy_uj",
    "energy_compute_uj",
    "energy_io_uj",
    "energy_both_uj",
    "energy_idle_uj",
    "io_us",
    "sealing_us",
    "makespan_us",
    "overhead_pct",
    "throughput_fps",
    "throughput_loss_pct",
    "card_read_bytes",
    "card_write_bytes",
    "maps_stay_bytes",
    "weights_stay_bytes",
    "wear",
    "wear_worst",
    "wear_years_first_failure",
    "wear_years_first_failure_worst",
    "wear_years_half",
    "wear_years_half_worst",
    "write_amplification_block",
    "write_amplification_erase",
)
"""Every number says in its name what it counts. Bytes may have fractions: 4-bit elements.

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
``makespan_us`` is the plan's time of all its frames, ``latency_us`` beside it the run's: the calls
of kernels as the simulated core counted them, what the card charges, and no polling.
``…_stay_bytes`` are the SRAM from which on no feature map, or no weight, has to be swapped.
"""

NO_LIMIT = 1 << 30
"""Bytes of a memory that limits nothing: that of a computer (``hardware=host``)."""

SCORE = "score_validation"
"""In ``weights.npz`` of recipes that choose by more than the accuracy on the validation images: the
accuracy on these and distorted copies of them."""
