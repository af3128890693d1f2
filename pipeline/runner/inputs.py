"""What the stages of one run depend on, hashed once: nobody else writes into a run's workspace.

DVC by itself hashes each file ten times for each stage that depends on it, and many stages import
the same code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.runner import cached


class Inputs:
    """Hashes and metadata of files and folders, and the content of files of parameters, by path."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[Any, Any]] = {}
        self._dumped: dict[str, dict[str, Any]] = {}
        self._params: dict[str, Any] = {}

    def settle(self, stage: Any) -> None:
        """Have each dependency of ``stage`` know its hash, and keep it: what DVC does with the
        stage from here on looks at no file again."""
        from dvc.dependency.param import ParamsDependency

        for dep in stage.deps:
            if isinstance(dep, ParamsDependency):
                self._read(dep)
            else:
                self._hash(dep)
                dep.dumpd = partial(self._dump, dep.fs_path, dep.dumpd)
            dep.get_hash = lambda found=dep.hash_info: found
            dep.save = lambda: None

    def _dump(self, path: str, dumpd: Callable[[], dict[str, Any]], **_: Any) -> dict[str, Any]:
        """What dvc.lock says of a file, which is the same for each stage; DVC's options are for
        outputs."""
        if path not in self._dumped:
            self._dumped[path] = dumpd()
        return dict(self._dumped[path])

    def _read(self, dep: Any) -> None:
        """As DVC's own way, which parses the file again for each stage."""
        from dvc.utils.serialize import load_yaml
        from dvc_data.hashfile.hash_info import HashInfo

        if dep.fs_path not in self._params:
            self._params[dep.fs_path] = load_yaml(dep.fs_path)
        try:
            values: Any = {key: _value(self._params[dep.fs_path], key) for key in dep.params}
        except (KeyError, TypeError):
            dep.save()  # DVC says which one is missing
        else:
            dep.hash_info = HashInfo("params", values)

    def _hash(self, dep: Any) -> None:
        from dvc_data.hashfile.hash_info import HashInfo
        from dvc_data.hashfile.meta import Meta

        path = Path(dep.fs_path)
        if found := self._files.get(dep.fs_path):
            dep.meta, dep.hash_info = found
            return
        if path.is_file():
            status = path.stat()
            dep.meta = Meta(size=status.st_size, isexec=bool(status.st_mode & 0o100))
            dep.hash_info = HashInfo("md5", cached.md5(path))
        else:
            dep.save()  # a folder, or nothing
        self._files[dep.fs_path] = dep.meta, dep.hash_info


def _value(content: Any, key: str) -> Any:
    """``content``'s value of a dotted key."""
    for part in key.split("."):
        content = content[part]
    return content
