"""Hold what stages agree on about metrics; their names are in ``pipeline.words``."""

METRICS_VERSION = 2
"""The meaning of the names; figures of two versions are not compared. Version 1's ``cycles``,
``instructions`` and ``energy_uj`` of a Cortex-M were nn_invoke's alone, without the feeding."""

NO_LIMIT = 1 << 30
"""Bytes of a memory that limits nothing: that of a computer (``hardware=host``)."""

SCORE = "score_validation"
"""In ``weights.npz`` of recipes that choose by more than the accuracy on the validation images: the
accuracy on these and distorted copies of them."""
