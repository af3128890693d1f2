"""What a config may have run, import or write to: the one list. docs/security.md says why.

Config files come from other people. What they may name is listed here; what is typed on the command
line is the user's own word, and some keys are only taken from there. ``THIMBLE_TRUST=1`` in the
environment lifts the list, for files that one has read.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import partial, wraps
from pathlib import PurePosixPath
from typing import Any

from omegaconf import DictConfig, OmegaConf

from pipeline.errors import ThimbleError

TRUST = "THIMBLE_TRUST"

SILENT = {"version": 1, "root": None, "disable_existing_loggers": False}
"""Hydra's logging ``none``. Python's logging config calls whatever ``()`` and ``ext://`` name."""

TARGETS = {
    "hydra.callbacks.check": ("pipeline.runner.options.Check",),
    "hydra.sweeper": tuple(
        f"hydra_plugins.thimble.{name}" for name in ("EveryCombination", "Architectures")
    ),
    "hydra.launcher": tuple(
        f"hydra_plugins.thimble.{name}" for name in ("Serial", "Local", "Submitit", "Ray")
    ),
}
"""All classes that Hydra makes, by the node that names each."""

OPTIONS = (
    *("_target_", "n_jobs", "cluster", "name", "timeout_min", "cpus_per_task", "gpus_per_node"),
    *("mem_gb", "nodes", "tasks_per_node", "slurm_partition", "slurm_account", "slurm_qos"),
    *("slurm_array_parallelism", "slurm_constraint", "slurm_gres", "slurm_time", "slurm_mem"),
    *("slurm_exclude", "slurm_comment", "ray.init.object_store_memory", "ray.remote.num_cpus"),
    *("ray.remote.num_gpus", "ray.remote.memory", "ray.remote.resources"),
    "ray.remote.max_retries",
)
"""Launcher options that a file may give: no commands to run before a job, no other Python, and no
cluster elsewhere, which would be sent code and could send some."""

WORD = re.compile(r"[\w.,:=+@/-]*")
"""What such an option may be: SLURM's go into the head of a shell script."""

PLACES = ("outputs", "multirun")
"""The folders that a file may have runs write to, where the command is typed."""

SUBFOLDER = re.compile(r"([\w.=,+-]|\$\{hydra\.job\.(num|id|override_dirname)\})+")

TOOL = re.compile(r"(\w+(-\w+)*-)?(cc|gcc|clang|objcopy|objdump)(-[\d.]+)?")
"""A compiler or a binary tool by its usual name, found in PATH."""

FLAG = re.compile(
    r"""
      -m[a-z0-9-]+(=[\w+.-]+)?
    | -f[a-z0-9-]+(=\d+)?                       # no value that names a plugin, a linker, a file
    | -D[A-Z_][A-Z0-9_]*(=(0x[\dA-Fa-f]+|\d+)[uUlL]*)?      # a number, no C
    | -U[A-Za-z_]\w*
    | -O[0-3sgz]? | -g[0-3]? | -std=[\w:+]+ | -pedantic | -static | -nostdlib | -nostartfiles
    | -W[a-z][a-z0-9+-]*(=\d+)?
    | -Wl(,(--gc-sections|--strip-debug|--strip-all|--relax|--build-id=none|--no-warn-rwx-segments
        |--print-memory-usage|--defsym=\w+=(0x[\da-fA-F]+|\d+)))+
    """,
    re.VERBOSE,
)
"""Compiler options without a way to load code, run a program or name a file."""

FLASHERS = {
    "avrdude": r"-[DVqv]|-[pcPb] (\{part\}|\{port\}|\w+)|-U flash:w:\{hex\}:i",
    "openocd": r"-f (interface|target|board)/\w[\w.-]*\.cfg"
    r"|-c program \{\{\{hex\}\}\}( verify| reset| exit)*",
    "pyocd": r"flash|load|-t (\{part\}|\w+)|\{hex\}",
    "st-flash": r"--reset|--format ihex|write|\{hex\}",
}
"""What each flasher may be told: the words of ``hardware.flasher``, one pattern for each. OpenOCD's
other commands can run programs."""


def guard(words: Sequence[str]) -> None:
    """Have every config that Hydra composes from now on checked, before Hydra itself acts on it.
    ``words`` are what is typed."""
    from hydra._internal.config_loader_impl import ConfigLoaderImpl

    compose = ConfigLoaderImpl.load_configuration

    @wraps(compose)
    def checked(*args: Any, **kwargs: Any) -> DictConfig:
        config = compose(*args, **kwargs)
        if kwargs.get("config_name", args[1:2]):  # Hydra's own help has no config
            check(config, words)
        return config

    ConfigLoaderImpl.load_configuration = checked  # type: ignore[method-assign]


def check(config: DictConfig, words: Sequence[str]) -> None:
    """Raise ThimbleError for what a composed config's ``hydra`` node may not say, and for keys that
    are not taken from a file. ``words`` are what is typed."""
    if os.environ.get(TRUST) == "1":
        return
    node = config.hydra
    for key in ("job_logging", "hydra_logging"):
        if _plain(node[key]) not in (SILENT, {**SILENT, "disable_existing_loggers": True}):
            raise _refused(f"hydra.{key}", "only none and disabled are known here")
    for key, value in _leaves(_plain(node.callbacks), "hydra.callbacks"):
        if key != "hydra.callbacks.check._target_":
            raise _refused(f"{key}={value}", "no callbacks but the project's own are called")
    for key, known in TARGETS.items():
        named = OmegaConf.select(node, f"{key.removeprefix('hydra.')}._target_")
        if named not in known:
            raise _refused(f"{key}._target_={named}", f"only {', '.join(known)}")
    if _plain(node.job.env_set):
        raise _refused("hydra.job.env_set", "a config sets no environment variables")
    if node.output_subdir not in (".hydra", None):
        raise _refused(f"hydra.output_subdir={node.output_subdir}", "only .hydra and null")
    typed = {word.lstrip("+~").partition("=")[0] for word in words}
    if (remote := OmegaConf.select(config, "cache.remote")) and "cache.remote" not in typed:
        raise _untyped(f"cache.remote={remote}", "programs that come from it are run")
    _check_places(node, typed)
    launcher = OmegaConf.to_container(node.launcher, resolve=True)
    for key, value in _leaves(launcher, "hydra.launcher"):
        option = key.removeprefix("hydra.launcher.")
        listed = any(option == name or option.startswith(f"{name}.") for name in OPTIONS)
        listed = (listed and WORD.fullmatch(str(value)) is not None) or value == "auto"
        if not listed and not any(key == word or key.startswith(f"{word}.") for word in typed):
            raise _untyped(f"{key}={value}", "launchers can be told to run programs")


def hardware(node: Mapping[str, Any]) -> None:
    """Raise ThimbleError for tools, options and a flasher's command that the list does not know.

    Args:
        node: the resolved config's ``hardware``.
    """
    if os.environ.get(TRUST) == "1":
        return
    tools = node["toolchain"]
    for key in ("compiler", "objcopy", "objdump"):
        if key in tools and not TOOL.fullmatch(str(tools[key])):
            raise _refused(
                f"hardware.toolchain.{key}={tools[key]}",
                "give the name of a gcc, clang, objcopy or objdump that is in PATH",
            )
    for flag in tools.get("flags") or ():
        if not FLAG.fullmatch(str(flag)):
            raise _refused(f"hardware.toolchain.flags: {flag}", "it could run or read other files")
    if command := node.get("flasher"):
        _check_flasher(str(command))


def _check_flasher(command: str) -> None:
    refused = partial(_refused, f"hardware.flasher={command}")
    try:
        program, *words = shlex.split(command)
    except ValueError:
        raise refused("quotes come in pairs") from None
    if program not in FLASHERS:
        raise refused(f"only {', '.join(FLASHERS)}")
    said = " ".join(words)
    if not re.fullmatch(rf"(({FLASHERS[program]})( (?!$)|$))*", said):
        raise refused(f"{program} could be told to run or write something else")


def _check_places(node: DictConfig, typed: set[str]) -> None:
    for key in ("run.dir", "sweep.dir"):
        place = str(OmegaConf.select(node, key))
        parts = PurePosixPath(place).parts
        inside = parts and parts[0] in PLACES and ".." not in parts
        if not inside and f"hydra.{key}" not in typed:
            raise _untyped(f"hydra.{key}={place}", "runs write there and remove what is in the way")
    subfolder = str(_plain(node.sweep)["subdir"])
    below = SUBFOLDER.fullmatch(subfolder) and ".." not in subfolder
    if not below and "hydra.sweep.subdir" not in typed:
        raise _untyped(f"hydra.sweep.subdir={subfolder}", "jobs write there")


def _leaves(node: Any, key: str) -> Iterator[tuple[str, Any]]:
    """The values in ``node`` that are no mappings, with their keys, dotted."""
    if isinstance(node, Mapping):
        for name, value in node.items():
            yield from _leaves(value, f"{key}.{name}")
    else:
        yield key, node


def _plain(node: Any) -> Any:
    """The content of a config's node, with interpolations as they are written."""
    return OmegaConf.to_container(node, resolve=False) if OmegaConf.is_config(node) else node


def _refused(what: str, why: str) -> ThimbleError:
    return ThimbleError(
        f"{_line(what)}: refused, {why}; {TRUST}=1 in the environment allows what you trust"
    )


def _untyped(what: str, why: str) -> ThimbleError:
    return ThimbleError(f"{_line(what)}: not taken from a file, {why}; if you want it, type it")


def _line(text: str) -> str:
    return " ".join(text.split())
