"""Holds configs to ``reach.py``, the list of what they may have run, import or write to;
docs/security.md says why.

Config files come from other people. What is typed on the command line is the user's own word;
``THIMBLE_TRUST=1`` in the environment lifts the list, for files that one has read.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Transformer
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pipeline import home
from pipeline.errors import ThimbleError
from pipeline.runner.reach import BESIDE, JOB, line

TRUST = "THIMBLE_TRUST"
TYPE = "type it if you trust it, or set"
WORDS = "THIMBLE_WORDS"
"""The environment variable with the words of the command line, for jobs in other processes."""

Leaf = tuple[str, Any, Any]
"""A dotted key, its value, and the same as it is written."""


def listen(words: Sequence[str]) -> None:
    """``words`` are what the user has typed."""
    os.environ[WORDS] = json.dumps(list(words))


def guard() -> None:
    """Have every config that Hydra composes from now on checked, before Hydra itself acts on it."""
    from hydra._internal.config_loader_impl import ConfigLoaderImpl

    loader: Any = ConfigLoaderImpl
    compose, search = loader.load_configuration, loader._process_config_searchpath

    seen = dict[tuple[Any, ...], DictConfig]()

    @wraps(compose)
    def checked(
        self: Any,
        config_name: Any,
        overrides: list[str],
        run_mode: Any,
        from_shell: bool = True,
        validate_sweep_overrides: bool = True,
    ) -> Any:
        """Hydra composes a command's config twice, first to see whether it is a sweep, for which a
        key may have several values; then with ``hydra.mode``: it gets the same."""
        asked = (config_name, *(word for word in overrides if not word.startswith("hydra.mode=")))
        if asked in seen and validate_sweep_overrides:
            parsed = OverridesParser.create().parse_overrides(overrides)
            self.validate_sweep_overrides_legal(parsed, run_mode, from_shell)
            config = seen.pop(asked)
            of_hydra = [each.input_line for each in parsed if each.is_hydra_override()]
            config.hydra.mode, config.hydra.overrides.hydra = run_mode, of_hydra
            return config
        words = (run_mode, from_shell, validate_sweep_overrides)
        config = compose(self, config_name, overrides, *words)
        if config_name:  # Hydra's own help has no config
            check(config, overrides)
        if not validate_sweep_overrides:
            seen[asked] = config
        return config

    @wraps(search)
    def searched(self: Any, config_name: Any, overrides: Any, repository: Any) -> None:
        """Hydra imports a package that is searched for configs before any is composed."""
        found = [each.value() for each in overrides if each.key_or_group == "hydra.searchpath"]
        loaded = repository.load_config(config_path=config_name) if config_name else None
        if loaded and OmegaConf.is_dict(loaded.config):
            found.append(OmegaConf.select(loaded.config, "hydra.searchpath"))
        _hold(leaves(found, "hydra.searchpath"))
        search(self, config_name, overrides, repository)

    loader.load_configuration, loader._process_config_searchpath = checked, searched


def check(config: DictConfig, overrides: Sequence[str] = ()) -> None:
    """Raise ThimbleError for what a composed config may not have Hydra do; ``overrides``, which
    Hydra lists in it, are checked where they have gone."""
    listed = re.compile(r"hydra\.overrides\.(hydra|task)")
    found = leaves(config.hydra, "hydra")
    _hold(leaf for leaf in found if not (listed.fullmatch(leaf[0]) and leaf[1] in overrides))


def task(config: DictConfig, folders: Iterable[Path], way: str = TYPE) -> None:
    """Raise ThimbleError for what a config may not have the stages do.

    Args:
        folders: of config files: files below these may be named, too.
        way: to have it nevertheless.
    """
    _hold((leaf for leaf in leaves(config) if not leaf[0].startswith("hydra.")), folders, way)


def folders(runtime: Any) -> list[Path]:
    """Return where ``hydra.runtime`` says that config files are."""
    return [Path(each.path) for each in runtime.config_sources if each.schema == "file"]


def _hold(found: Iterable[Leaf], folders: Iterable[Path] = (), way: str = TYPE) -> None:
    if os.environ.get(TRUST) == "1":
        return
    given = typed(tuple(json.loads(os.environ.get(WORDS, "[]"))))
    places = [home.typed().resolve(), *(each.resolve() for each in folders)]
    for key, value, written in found:
        known, rule = given.get(key, ()), line(key)
        if value is None or value in known or written in known:
            continue
        said = str(written if rule.pattern == JOB else getattr(value, "name", value))
        if rule.pattern == BESIDE:
            fine = not said or _path(said) in [_path(str(each)) for each in known]
            fine = fine or any(_path(said).is_relative_to(each) for each in places)
        else:
            fine = bool(re.fullmatch(rule.pattern, said))
        if not fine:
            raise ThimbleError(
                f"{' '.join(f'{key}={said}'.split())}: not taken from a file, it reaches "
                f"{rule.reach}: a file may give {rule.may}; {way} {TRUST}=1"
            )


def _path(text: str) -> Path:
    """Find where it really is: a link may lead elsewhere."""
    return (home.typed() / Path(text).expanduser()).resolve()


@cache
def typed(words: tuple[str, ...]) -> Mapping[str, Sequence[Any]]:
    """Return the values that ``words`` give to each key; several in a sweep."""
    found: dict[str, list[Any]] = {}
    for word in words:
        with suppress(Exception):  # a flag, or Hydra says what is wrong with it
            override = OverridesParser.create().parse_override(word)
            values: Iterable[Any] = [override._value]
            if override.is_sweep_override():
                values = override.sweep_iterator(Transformer.identity)
            for value in values:
                content = {override.key_or_group: override._convert_value(value)}
                for key, leaf, _ in leaves(content):
                    found.setdefault(key, []).append(leaf)
    return found


def leaves(node: Any, key: str = "") -> Iterator[Leaf]:
    """Yield the values in ``node`` that are no containers; the elements of a list have its key.
    What has no value yet, ``???``, is left out; what cannot be resolved is as it is written."""
    own = OmegaConf.is_config(node)
    listed = OmegaConf.is_list(node) or isinstance(node, list)
    for name in range(len(node)) if listed else list(node):
        written = node._get_node(name)._value() if own else node[name]
        try:
            value = node[name]
        except OmegaConfBaseException:
            value = written
        inner = key if listed else f"{key}.{name}".lstrip(".")
        if OmegaConf.is_config(value) or isinstance(value, dict | list):
            yield from leaves(value, inner)
        elif value != "???":
            yield inner, value, written
