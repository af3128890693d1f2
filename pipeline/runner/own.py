"""The user's own files that a config names: absolute paths, and hashes for the cache key.

Stages run elsewhere than where the command was typed, and DVC knows a file by its content: that of
the user's model and data is part of the config (``files`` in params.yaml).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeline.runner.closure import closure

PATHS = (("data", "path"), ("model", "path"), ("model", "state_dict"))
"""Groups and keys that name a file or a folder."""

ONNX = "pipeline.importers.onnx.Onnx"

FACTORY = "factory"
"""The key of ``model`` that names Python code: ``package.module:function``."""


def paths(config: Mapping[str, Any]) -> Iterator[tuple[str, str, Path]]:
    """Yield group and key of each path that ``config`` names, and that."""
    for group, key in PATHS:
        if path := config[group].get(key):
            yield group, key, Path(path).expanduser()


def absolute(config: dict[str, Any], typed: Path) -> None:
    """Make the paths in ``config`` absolute: they are relative to ``typed``."""
    for group, key, path in paths(config):
        config[group][key] = str(typed / path)


def named(config: dict[str, Any]) -> None:
    """Call the user's own network what its file, or its class, is called."""
    model = config["model"]
    file, code = str(model.get("path") or ""), str(model.get(FACTORY) or "")
    model["name"] = Path(file).stem or code.rpartition(":")[2] or model["name"]


def hashes(config: Mapping[str, Any], typed: Path) -> dict[str, str]:
    """Return a hash of the files that each group names, "" for none, or none that is there: the
    stage that needs it says so."""
    found: dict[str, dict[str, Path]] = {group: {} for group, _ in PATHS}
    for group, key, path in paths(config):
        files = [path] if path.is_file() else sorted(path.rglob("*"))
        for file in filter(Path.is_file, files):  # in data=folder a file's folder is its class
            name = file.relative_to(path) if file != path else file.name
            found[group][f"{key}/{name}"] = file
    model = config["model"]
    found["model"] |= {f"path/{name}": file for name, file in _beside(model).items()}
    for file in _modules(str(model.get(FACTORY) or ""), typed):
        found["model"][str(file.relative_to(typed))] = file
    return {group: _digest(files) if files else "" for group, files in found.items()}


def _beside(model: Mapping[str, Any]) -> dict[str, Path]:
    """Return the files with constants that an ONNX model names, by these names."""
    path = Path(str(model.get("path") or ""))
    if model.get("_target_") != ONNX or not path.is_file():
        return {}
    from pipeline.importers.onnx_external import files  # onnx takes part of a second

    return files(path)


def _modules(factory: str, typed: Path) -> list[Path]:
    """Return the file of ``factory`` below ``typed``, and the files there that it imports."""
    module = factory.partition(":")[0].replace(".", "/")
    candidates = (f"{module}.py", f"{module}/__init__.py")
    first = [name for name in candidates if module and (typed / name).is_file()]
    own = {path.stem for path in typed.glob("*") if path.suffix == ".py" or path.is_dir()}
    return [typed / name for name in sorted(closure(typed, first, frozenset(own)))]


def _digest(files: Mapping[str, Path]) -> str:
    digest = hashlib.sha256()
    for name, file in files.items():
        with file.open("rb") as opened:
            digest.update(f"{name} ".encode())
            digest.update(hashlib.file_digest(opened, "sha256").digest())
    return digest.hexdigest()[:32]
