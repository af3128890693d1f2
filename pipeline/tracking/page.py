"""The page of MLflow: what the experiment says of itself, and a saved view with the columns that
someone who looks for the best run compares.

MLflow has no default columns of an experiment's own. A saved view is a tag, which its page lists
under *Views* and opens by ``viewStateShareKey``.
"""

from __future__ import annotations

import json

VIEW = "figures"
"""The saved view's key, in its tag and in links."""

COLUMNS = (
    *("accuracy_int", "pmu_bytes", "sram_bytes", "flash_bytes", "latency_us", "energy_uj"),
    *("wear", "planned_sram_bytes", "planned_flash_bytes", "modelled_us"),
)
"""Metrics that the view shows, beside each run's models and data sets."""

PAGE = "#/experiments/{}/runs?workflowType=machine_learning&viewStateShareKey=" + VIEW
ABOUT = (
    "Runs and sweeps of `python run.py`, explained in docs/tracking.md: [all runs, with accuracy, "
    "PMU, SRAM, flash, latency, energy and wear](" + PAGE + ")"
)


def tags(experiment: str) -> dict[str, str]:
    """Return the tags of ``experiment``, an id."""
    figures = [f"metrics.`{name}`" for name in COLUMNS]
    shown = [*figures, *(f"attributes.`{name}`" for name in ("Models", "Dataset"))]
    widths = dict.fromkeys(figures, 100) | {"attributes.`Run Name`": 330}
    state = {"selectedColumns": shown, "columnOrder": [*widths, *shown], "columnWidths": widths}
    view = {"name": "Figures of each run", "createdAt": 0, "state": json.dumps(state)}
    return {
        "mlflow.note.content": ABOUT.format(experiment),
        f"mlflow.sharedViewState.{VIEW}": json.dumps(view),
    }
