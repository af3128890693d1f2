"""A whole project in a temporary folder: the real runner and config, stages that compute nothing.

The runner is started as a user starts it, ``python run.py …``, but for its imports (parent.py):
exit codes, streams and signals are the real ones.
"""

import atexit
import compileall
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from pipeline.home import ROOT, STAGES
from tests.programs import written
from tests.runner.parent import Forked
from tests.waiting import until

FAKE = Path(__file__).parent / "fake"
STRATEGY = '''\
"""A fake strategy."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class {title}:
    pmu_bytes: int = {pmu}
    layout: Literal["slots", "contiguous"] = "slots"

    def plan(self) -> str:
        return "{title}"
'''
UNUSED = "from pipeline.fake import Unused\n"
CONF = {
    "model/mnist_2kb": {"name": "mnist_2kb", "_target_": "pipeline.models.unused.Unused"},
    "data/mnist": {"name": "mnist", "_target_": "pipeline.datasets.unused.Unused", "validation": 3},
    "train/quick": {"name": "quick", "_target_": "pipeline.training.unused.Unused", "batch": 2},
    "prune/none": {"name": "none", "_target_": "pipeline.pruning.unused.Unused"},
    "frontend/none": {"name": "none", "_target_": "pipeline.frontends.unused.Unused"},
    "quantize/int4": {"name": "int4", "_target_": "pipeline.quantize.unused.Unused"},
    "target/simulate": {"name": "simulate", "images": 7},
    "strategy/naive": {"name": "naive", "_target_": "pipeline.strategies.big.Big"},
    "strategy/herringbone": {"name": "herringbone", "_target_": "pipeline.strategies.small.Small"},
}
HARDWARE = {
    "title": "a board", "core": "avr", "part": "m328", "clock_hz": 16000000, "sram_bytes": 2048,
    "flash_bytes": 32256, "weights_in": "sram", "streams_input": True, "stack_reserve_bytes": 100,
    "cycles_per_mac": 10.0, "toolchain": {"compiler": "avr-gcc", "package": "gcc-avr"},
    "power": {"supply_volt": 5.0, "active_ma": 10.0, "idle_ma": 5.0, "source": "a data sheet"},
    "simulator": "simavr",
}  # fmt: skip


@cache
def compiled() -> Path:
    """A folder with the project's code and its bytecode, which each command would make anew."""
    folder = Path(tempfile.mkdtemp(prefix="thimble-code-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name in ("pipeline", "stages"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        compileall.compile_dir(folder / name, quiet=1)
    return folder


UNWRITTEN = ["codegen", "graph", "importers", "kernels", "passes", "placement", "plan"]
UNWRITTEN += ["schedules", "search", "timing"]
"""Folders of the code that no test writes to: linked, for there are hundreds of files."""


def unwritten(folder: str, _: list[str]) -> list[str]:
    return UNWRITTEN if Path(folder).name == "pipeline" else []


@dataclass
class Run:
    """A finished command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The only thing on standard output: one JSON object on one line."""
        assert self.out.count("\n") == 1, self.out
        return json.loads(self.out)


@dataclass
class Project:
    """The project in ``root``; ``env`` is added to the environment of its commands."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True)
        shutil.copytree(compiled() / "stages", self.root / "stages")
        shutil.copytree(compiled() / "pipeline", self.root / "pipeline", ignore=unwritten)
        for name in UNWRITTEN:
            (self.root / "pipeline" / name).symlink_to(compiled() / "pipeline" / name)
        for name in ("run.py", ".dvcignore", "dvc.yaml"):
            shutil.copy(ROOT / name, self.root / name)
        for name in ("sweep", "hydra", "package", "security", "experiment"):
            shutil.copytree(ROOT / "conf" / name, self.root / "conf" / name)
        shutil.copy(ROOT / "conf" / "config.yaml", self.root / "conf" / "config.yaml")
        (self.root / "firmware").mkdir()
        self.write("firmware/kernel.c", "int x;\n")
        shutil.copy(FAKE / "pipeline_fake.py", self.root / "pipeline" / "fake.py")
        program = "from pipeline.fake import make\nfrom stages._main import run\n\nrun(make)\n"
        for stage in STAGES:
            self.write(f"stages/{stage}.py", program)
        self.write("pipeline/strategies/__init__.py", "")
        self.write("pipeline/strategies/small.py", STRATEGY.format(title="Small", pmu=400))
        self.write("pipeline/strategies/big.py", STRATEGY.format(title="Big", pmu=3000))
        for name in ("models", "datasets", "training", "pruning", "frontends", "quantize"):
            self.write(f"pipeline/{name}/unused.py", UNUSED)
        for name, content in CONF.items():
            self.write(f"conf/{name}.yaml", yaml.safe_dump(content))
        for board in ("arduino", "big"):
            content = {**HARDWARE, "name": board, "clock_hz": 16000000 if board == "big" else 8}
            self.write(f"conf/hardware/{board}.yaml", yaml.safe_dump(content))
        self.write("dvc.yaml", yaml.safe_dump({"stages": self.stages()}, sort_keys=False))

    def stages(self) -> dict[str, Any]:
        from tests.runner.fake import pipeline_fake as fake

        def whole(paths: list[str]) -> list[str]:
            """The folder in place of the files in it."""
            return list(dict.fromkeys(re.sub("^generated/.*", "generated", p) for p in paths))

        stages: dict[str, Any] = {}
        for name in STAGES:
            inputs, outs, key = fake.STAGES[name]
            params = [{"code.json": [f"{name}.hash"]}, ".".join(key)]
            cmd = f"python -m stages.{name}"
            stages[name] = {"cmd": cmd, "deps": whole(inputs), "params": params}
            stages[name]["outs"] = whole(outs)
            groups = {"fetch": "data", "train": "model", "schedule": "strategy"}.get(name)
            stages[name]["meta"] = {"targets": [groups] if groups else [], "versions": ["host"]}
        return stages

    def write(self, name: str, content: str) -> None:
        written(self.root, {name: content})

    def start(
        self, *args: str, program: str = "run.py", real: bool = False, **kwargs: Any
    ) -> subprocess.Popen[str]:
        """Start ``run.py *args``, a ``real`` one or forked; tracking is off unless asked for."""
        tracked = any(arg.startswith("tracking=") for arg in args)
        words = [sys.executable, program, *args, *([] if tracked else ["tracking=none"])]
        if not real:
            kwargs["kind"] = "tracked" if tracked else "made up"
        env = {**clean_environment(), "FAKE_LOG": str(self.root / "log"), **self.env}
        kwargs |= dict.fromkeys(("stdout", "stderr"), subprocess.PIPE) | {"text": True}
        return (subprocess.Popen if real else Forked)(words, cwd=self.root, env=env, **kwargs)

    def run(self, *args: str, real: bool = False) -> Run:
        process = self.start(*args, real=real)
        out, err = process.communicate()
        return Run(process.returncode, out, err)

    def wait_for(self, stage: str) -> None:
        """Until a stage's process has started."""
        log = self.root / "log"
        until(lambda: log.exists() and stage in log.read_text())

    def hold(self, stage: str) -> None:
        """Let every ``stage`` wait, once it has started, until ``release``."""
        self.write(f"held-{stage}", "")

    def release(self, stage: str) -> None:
        (self.root / f"held-{stage}").unlink()

    def worker(self, number: int, stage: str = "simulate") -> psutil.Process:
        """The process that runs job ``number`` of a sweep, once the job's ``stage`` has begun."""
        begun = self.root / f"began-{stage}-{number}"
        until(lambda: begun.exists() and begun.read_text())
        return psutil.Process(int(begun.read_text()))

    def ran(self) -> list[str]:
        """The stages that really ran since the last call, in order."""
        log = self.root / "log"
        names = log.read_text().split() if log.exists() else []
        log.unlink(missing_ok=True)
        return names


MOUNTS = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")


@contextlib.contextmanager
def mounted(place: Path, size: str) -> Iterator[Path]:
    """A disk of that size at ``place``."""
    place.mkdir(parents=True)
    if os.system(f"mount -t tmpfs -o size={size} tmpfs {place} 2>/dev/null"):
        pytest.skip("mounting is not allowed here")
    try:
        yield place
    finally:
        os.system(f"umount -l {place}")


def nothing_outlives(project: Project) -> None:
    """Until each process of a killed run has ended."""
    until(lambda: not processes_in(project.root))


def processes_in(root: Path, name: str = "") -> list[int]:
    """The processes whose working folder is in ``root``, and whose name begins with ``name``."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            inside = str((place / "cwd").readlink()).startswith(str(root))
            if inside and (place / "comm").read_text().startswith(name):
                found.append(int(place.name))
    return found


def clean_environment() -> dict[str, str]:
    """The environment without what a run of this test session may have put there."""
    return {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("THIMBLE", "HYDRA", "MLFLOW", "PYTEST", "FAKE"))
    }
