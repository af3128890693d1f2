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

PATHS = {"data": ("path",), "model": ("path", "state_dict")}
"""Keys of each group that name a file or a folder."""

ONNX = "pipeline.importers.onnx.Onnx"

FACTORY = "factory"
"""The key of ``model`` that names Python code: ``package.module:function``."""


def absolute(config: dict[str, Any], typed: Path) -> None:
    """Make the paths in ``config`` absolute: they are relative to ``typed``."""
    for group, keys in PATHS.items():
        for key in keys:
            if path := config[group].get(key):
                config[group][key] = str(typed / Path(path).expanduser())


def named(config: dict[str, Any]) -> None:
    """Call the user's own network what its file, or its class, is called."""
    model = config["model"]
    name = (
        Path(str(model.get("path") or "")).stem or str(model.get(FACTORY) or "").rpartition(":")[2]
    )
    model["name"] = name or model["name"]


def hashes(config: Mapping[str, Any], typed: Path) -> dict[str, str]:
    """A hash of the files that each group names, "" for none. What is missing has a hash too:
    the stage that needs it says so."""
    found = {}
    for group, keys in PATHS.items():
        named = {key: Path(path) for key in keys if (path := config[group].get(key))}
        files = {f"{key}/{n}": file for key, path in named.items() for n, file in _files(path)}
        if group == "model":
            files |= {f"path/{name}": file for name, file in _beside(config[group]).items()}
            modules = _modules(str(config[group].get(FACTORY) or ""), typed)
            files |= {str(file.relative_to(typed)): file for file in modules}
        found[group] = _digest(files) if named or files else ""
    return found


def _files(path: Path) -> Iterator[tuple[str, Path]]:
    """Files with their names below ``path``: in data=folder a file's folder is its class."""
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file():
                yield str(file.relative_to(path)), file
    elif path.is_file():
        yield path.name, path


def _beside(model: Mapping[str, Any]) -> dict[str, Path]:
    """The files with constants that an ONNX model names, by these names."""
    path = Path(str(model.get("path") or ""))
    if model.get("_target_") != ONNX or not path.is_file():
        return {}
    from pipeline.importers.onnx_external import files  # onnx takes part of a second

    return files(path)


def _modules(factory: str, typed: Path) -> list[Path]:
    """The file of ``factory`` below ``typed``, and the files there that it imports."""
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
