"""List the files of a run's folder, or of a sweep's, that MLflow gets: all but those of LEFT_OUT.

What stages write is read from the run's dvc.yaml, so that a new output is an artifact by itself. A
folder is not uploaded as it is: ``hydra.run.dir`` may be one that holds the user's own files, too.
Nor is a card's image that is only secret once it is sealed (docs/card-security.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import yaml

from pipeline.sealed_image import IMAGE, MANIFEST

WRITTEN = (
    *("README.txt", "params.yaml", "code.json", "code.patch"),
    *("dvc.yaml", "dvc.lock", "result.json", ".stages"),
    *("multirun.yaml", "sweep.json", "table.csv", "table.json", "rows.csv", "seeds.csv"),
    *("pareto.png", "profile.png", "figure.png", "sweep.html"),
)
"""Files that run.py itself writes into a run's folder and into a sweep's."""

_ARRAYS = "arrays: in the cache under the hashes of code.json, and replay=RUN makes them again"
LEFT_OUT = {
    "data": "the data set: the stage fetch brings it again and verifies its hash",
    **{
        f"{name}.npz": _ARRAYS for name in ("weights", "pruned", "graph", "float_labels", "outputs")
    },
    "build": "compiled programs: in the cache, and made again from generated/",
    ".dvc": "DVC's own settings and locks",
    ".jobs": "how far each job of a sweep was while it ran",
}
"""Files and folders that become no artifact, and why; a sweep's jobs are runs of their own."""


def kept(folder: Path) -> list[Path]:
    """Return the files and folders in ``folder`` that become artifacts, those that there are."""
    names = [*WRITTEN, *_outputs(folder)]
    left_out = {name for name in names if name.split("/")[0] in LEFT_OUT}
    there = (folder / name for name in dict.fromkeys(names) if name not in left_out)
    return [path for each in there for path in _without_secrets(each)]


def _without_secrets(path: Path) -> Iterator[Path]:
    """``path`` if there is anything; of a folder with an image to be encrypted all but that."""
    manifest = path / MANIFEST
    if manifest.is_file() and json.loads(manifest.read_text())["security"] == "encrypted":
        yield from sorted(each for each in path.iterdir() if each.name != IMAGE)
    elif path.is_file() or (path.is_dir() and any(path.iterdir())):
        yield path


def _outputs(folder: Path) -> list[str]:
    """List what stages of the run in ``folder`` write: none for a sweep, which has no stages."""
    pipeline = folder / "dvc.yaml"
    if not pipeline.is_file():
        return []
    stages = yaml.load(pipeline.read_text(), yaml.CSafeLoader)["stages"]
    return [str(out) for stage in stages.values() for out in stage["outs"]]
