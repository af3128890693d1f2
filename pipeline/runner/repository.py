"""DVC's repository of a run's folder, without what it does for folders that many share: this one is
new, and the run's alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any


def opened(folder: Path, config: Mapping[str, Any] | None) -> Any:
    """DVC's object of it; what it hashes it remembers as long as it is there, and not in a database
    on disk."""
    from dvc.repo import Repo
    from dvc_data.hashfile import state

    usual = state.State
    state.State = partial(_remembering, usual)  # type: ignore[assignment, misc]
    try:
        return Repo(str(folder), config=config)
    finally:
        state.State = usual  # type: ignore[misc]


def _remembering(kind: Any, root_dir: str, _: str, ignore: Any) -> Any:
    """DVC's state. The links that it notes, each in a transaction, are asked for by ``dvc
    checkout`` alone, to remove what another revision left."""
    found = kind(root_dir, None, ignore)
    found.hashes = found.links = _Remembered()
    found.set_link = lambda *_: None
    return found


class _Remembered(dict[str, Any]):
    """What DVC's database of hashes does."""

    def get_many(self, items: Iterable[str]) -> Iterator[tuple[str, Any]]:
        return ((item, self.get(item)) for item in items)

    def set_many(self, items: Iterable[tuple[str, Any]]) -> None:
        self.update(items)

    def close(self) -> None:
        """Nothing is open."""


def stages(repo: Any) -> dict[str, Any]:
    """Those of its dvc.yaml, by name."""
    with plain_paths():
        return {stage.name: stage for stage in repo.stage.collect()}


@contextmanager
def plain_paths() -> Iterator[None]:
    """While stages are loaded: DVC validates its configuration to know where each of their 1,800
    paths lies, all of which are files of this disk."""
    from dvc import output

    usual = output.get_cloud_fs
    first = list[tuple[Any, dict[str, Any]]]()

    def known(config: Any, **options: Any) -> tuple[Any, dict[str, Any], str]:
        path = str(options.get("url", ""))
        if options.keys() != {"url"} or "://" in path:
            return usual(config, **options)  # type: ignore[no-any-return]
        if not first:
            first.append(usual(config, **options)[:2])
        kind, options = first[0]
        return kind, dict(options), kind._strip_protocol(path)

    output.get_cloud_fs = known
    try:
        yield
    finally:
        output.get_cloud_fs = usual
